package mlxio_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

// savers are the functions that write a file.
var savers = map[string]func(path string) error{
	"NPY":         func(path string) error { return mlxio.SaveNPY(path, mlxc.Ones(mlxc.Float32, 3)) },
	"safetensors": func(path string) error { return mlxio.SaveSafetensors(path, named{"a": mlxc.Scalar(true)}, nil) },
	"GGUF":        func(path string) error { return mlxio.SaveGGUF(path, named{"a": mlxc.Ones(mlxc.Int8, 3)}, nil) },
	"Export": func(path string) error {
		return mlxc.Export(path, func(a arrays) arrays { return a }, mlxc.Ones(mlxc.Float32, 2))
	},
}

func eachSaver(t *testing.T, test func(t *testing.T, dir string, save func(path string) error)) {
	t.Helper()
	for name, save := range savers {
		t.Run(name, func(t *testing.T) { test(t, t.TempDir(), save) })
	}
}

func requireSize(t *testing.T, path string) {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular(), path)
	require.Positive(t, info.Size(), path)
}

func TestSavingKeepsTheMode(t *testing.T) {
	eachSaver(t, func(t *testing.T, dir string, save func(path string) error) {
		probe, path := filepath.Join(dir, "probe"), filepath.Join(dir, "x")
		require.NoError(t, os.WriteFile(probe, nil, 0o666)) //nolint:gosec // shows the umask
		want, err := os.Stat(probe)
		require.NoError(t, err)
		require.NoError(t, save(path))
		got, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want.Mode(), got.Mode())
		for _, mode := range []fs.FileMode{0o600, 0o640, 0o666, 0o400, 0o755} {
			require.NoError(t, os.Chmod(path, mode))
			require.NoError(t, os.Chmod(dir, 0o700)) //nolint:gosec // a folder
			require.NoError(t, save(path))
			got, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, mode, got.Mode())
		}
		mlxtest.RequireFiles(t, dir, "probe", "x")
	})
}

func TestSavingThroughLinks(t *testing.T) {
	eachSaver(t, func(t *testing.T, dir string, save func(path string) error) {
		for _, d := range []string{"runs/1", "elsewhere"} {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
		}
		links := map[string]string{
			"link": "chain", "chain": "runs/1/x", // relative, twice
			"dangling":          "elsewhere/new",
			"absolute":          filepath.Join(dir, "elsewhere", "y"),
			"folder":            "runs/1",
			"runs/1/up":         "../z",
			"through a folder":  "folder/../w", // the parent of runs/1, not of folder
			"elsewhere/another": "../folder/v",
		}
		for name, target := range links {
			require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
		}
		for name, target := range map[string]string{
			"link": "runs/1/x", "dangling": "elsewhere/new", "absolute": "elsewhere/y", "folder/up": "runs/z",
			"through a folder": "runs/w", "elsewhere/another": "runs/1/v", "folder/plain": "runs/1/plain",
		} {
			for range 2 {
				require.NoError(t, save(filepath.Join(dir, name)), name)
				requireSize(t, filepath.Join(dir, target))
			}
		}
		for name, target := range links {
			got, err := os.Readlink(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, target, got, "the link stays")
		}
		mlxtest.RequireFiles(t, filepath.Join(dir, "runs/1"), "plain", "up", "v", "x")
		mlxtest.RequireFiles(t, filepath.Join(dir, "elsewhere"), "another", "new", "y")

		require.NoError(t, os.Symlink("loop", filepath.Join(dir, "loop")))
		require.ErrorContains(t, save(filepath.Join(dir, "loop")), "too many")
	})
}

func TestSavingToPipesAndDevices(t *testing.T) {
	eachSaver(t, func(t *testing.T, dir string, save func(path string) error) {
		plain, pipe := filepath.Join(dir, "plain"), filepath.Join(dir, "pipe")
		require.NoError(t, save(plain))
		require.NoError(t, syscall.Mkfifo(pipe, 0o600))
		if strings.HasSuffix(t.Name(), "/Export") {
			require.ErrorContains(t, save(pipe), "regular files only")
			mlxtest.RequireFiles(t, dir, "pipe", "plain")
			return
		}
		read := make(chan []byte, 1)
		go func() {
			f, err := os.Open(pipe)
			if err == nil {
				data, _ := io.ReadAll(f)
				_ = f.Close()
				read <- data
			}
			close(read)
		}()
		require.NoError(t, save(pipe))
		want, err := os.ReadFile(plain)
		require.NoError(t, err)
		require.Equal(t, want, <-read)
		mlxtest.RequireFiles(t, dir, "pipe", "plain")

		for name, want := range map[string]error{"null": nil, "full": syscall.ENOSPC} {
			path := device(t, dir, name)
			err := save(path)
			require.ErrorIs(t, err, want)
			if want != nil {
				require.ErrorContains(t, err, path)
			}
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.NotZero(t, info.Mode()&fs.ModeDevice)
		}
	})
}

// device returns the path of a device of Linux. A process of root could replace the device, so for root it is a copy in
// dir.
func device(t *testing.T, dir, name string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		skip.Platform(t, "a device that is full exists on Linux only")
	}
	if os.Geteuid() != 0 {
		return filepath.Join("/dev", name)
	}
	path := filepath.Join(dir, name)
	number := map[string]int{"null": 1<<8 | 3, "full": 1<<8 | 7}[name]
	if err := syscall.Mknod(path, syscall.S_IFCHR|0o600, number); err != nil {
		skip.Platform(t, fmt.Sprint("root cannot make devices here: ", err))
	}
	return path
}

func TestSavingRemovesOldTemporaryFiles(t *testing.T) {
	eachSaver(t, func(t *testing.T, dir string, save func(path string) error) {
		old := time.Now().Add(-25 * time.Hour)
		for name, when := range map[string]time.Time{
			".mlxgrad-0123456789abcdef.tmp":  old,
			".mlxgrad-fedcba9876543210.tmp":  time.Now(), // of a save in progress
			".mlxgrad-0123456789abcdef.tmp2": old,
			"mlxgrad-0123456789abcdef.tmp":   old,
		} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
			require.NoError(t, os.Chtimes(filepath.Join(dir, name), when, when))
		}
		require.NoError(t, save(filepath.Join(dir, "x")))
		mlxtest.RequireFiles(t, dir, ".mlxgrad-0123456789abcdef.tmp2", ".mlxgrad-fedcba9876543210.tmp",
			"mlxgrad-0123456789abcdef.tmp", "x")
		t.Chdir(dir)
		require.NoError(t, save("y"))
		requireSize(t, filepath.Join(dir, "y"))
	})
}

// File systems allow names of 255 bytes.
func TestSavingUnderTheLongestName(t *testing.T) {
	eachSaver(t, func(t *testing.T, dir string, save func(path string) error) {
		path := filepath.Join(dir, strings.Repeat("x", 255))
		require.NoError(t, save(path))
		requireSize(t, path)
		require.ErrorContains(t, save(path+"x"), "too long")
		mlxtest.RequireFiles(t, dir, filepath.Base(path))
	})
}

func TestSavingToInvalidPaths(t *testing.T) {
	eachSaver(t, func(t *testing.T, dir string, save func(path string) error) {
		locked, file := filepath.Join(dir, "locked"), filepath.Join(dir, "file")
		require.NoError(t, os.Mkdir(locked, 0o500))
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		for _, c := range []struct {
			path string
			want error
		}{
			{filepath.Join(dir, "absent", "x"), fs.ErrNotExist},
			{filepath.Join(file, "x"), syscall.ENOTDIR},
			{filepath.Join(locked, "x"), fs.ErrPermission},
		} {
			if os.Geteuid() == 0 && errors.Is(c.want, fs.ErrPermission) {
				continue // root may
			}
			err := save(c.path)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.path)
		}
		require.ErrorContains(t, save(locked), "directory")
		require.Error(t, save(""))
		mlxtest.RequireFiles(t, dir, "file", "locked")
	})
}
