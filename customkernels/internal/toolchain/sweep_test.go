package toolchain

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// age sets the modification time of a file or folder to d before now.
func age(t *testing.T, path string, d time.Duration) {
	t.Helper()
	then := time.Now().Add(-d)
	require.NoError(t, os.Chtimes(path, then, then))
}

// CacheDir removes abandoned work folders, and cached files that were unused for more than 30 days before the last
// sweep. It keeps recent work folders and the user's own files.
func TestCacheIsSwept(t *testing.T) {
	t.Setenv("MLXGRAD_CACHE", t.TempDir())
	dir := filepath.Join(os.Getenv("MLXGRAD_CACHE"), "host")
	hash := strings.Repeat("0f", 32)
	type entry struct {
		name string
		age  time.Duration
		gone bool
	}
	entries := []entry{
		{"compile-1", 2 * day, true},
		{"checked-2", 2 * day, true},
		{"compile-3", day / 2, false},
		{"probe-4", 2 * day, true},
		{"checked-out", 40 * day, false}, // the user's
		{"photo.so", 40 * day, false},
		{hash + ".so", 2 * day, false},
		{hash + ".key", 29 * day, false},
		{hash + ".checked", 33 * day, true},
		{hash + ".gch", 33 * day, true},
	}
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, e := range entries {
		if kept.MatchString(e.name) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, e.name), nil, 0o600))
		} else {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, e.name, "x"), 0o700))
		}
		age(t, filepath.Join(dir, e.name), e.age)
	}
	look := func() (left []string) {
		t.Helper()
		forget()
		_, err := CacheDir()
		require.NoError(t, err)
		for _, e := range entries {
			_, err := os.Stat(filepath.Join(dir, e.name))
			if !errors.Is(err, fs.ErrNotExist) {
				require.NoError(t, err)
				left = append(left, e.name)
			}
		}
		return left
	}
	var want, first []string
	for _, e := range entries {
		if !e.gone {
			want = append(want, e.name)
		}
		if !e.gone || strings.HasPrefix(e.name, hash) {
			first = append(first, e.name)
		}
	}
	require.Equal(t, first, look(), "without the file swept, no cached file is old")
	require.Equal(t, first, look(), "cached files are swept once a day")
	swept := filepath.Join(dir, "swept")
	age(t, swept, 2*day)
	require.Equal(t, want, look(), "two days later")

	age(t, filepath.Join(dir, hash+".so"), 33*day)
	age(t, filepath.Join(dir, hash+".key"), 33*day)
	age(t, swept, 32*day)
	require.Equal(t, want, look(), "days without use of the cache do not count")
	age(t, swept, 2*day)
	require.True(t, Kept(filepath.Join(dir, hash+".key")))
	require.Equal(t, []string{"compile-3", "checked-out", "photo.so", hash + ".key"}, look())
	require.False(t, Kept(filepath.Join(dir, hash+".so")))
}

// Loading a library updates the modification times of all files that it reads, so that sweep keeps them.
func TestLoadingMarksFilesAsUsed(t *testing.T) {
	t.Setenv("CXX", newStandIn(t, "").path)
	cold(t)
	text := source(t, "copy")
	_, err := cache.Compile(t.Context(), text)
	require.NoError(t, err)
	dir, err := CacheDir()
	require.NoError(t, err)
	used := files(t, dir, "*.*")
	require.NotEmpty(t, used)
	for _, path := range used {
		age(t, path, 20*day)
	}
	forget()
	_, err = cache.Compile(t.Context(), text)
	require.NoError(t, err)
	precompiled := 0
	for _, path := range used {
		info, err := os.Stat(path)
		require.NoError(t, err)
		if time.Since(info.ModTime()) > day {
			precompiled++
		}
	}
	require.Equal(t, 3*len(files(t, dir, "*.gch")), precompiled, "only compilations use precompiled headers, key and stamp")
}

// The work folder of a killed process is removed by the next process. While its process lives, the folder stays,
// however old it is.
func TestKilledCompilation(t *testing.T) {
	cold(t)
	base := t.TempDir()
	dir := filepath.Join(base, "host")
	hangs := newStandIn(t, `case " $* " in *' --version '*) ;; *) touch $DIR/compiling; exec sleep 600;; esac`)
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "HOST_TEST_FILL="+base, "CXX="+hangs.path)
	require.NoError(t, cmd.Start())
	eventually(t, func() bool { return len(files(t, hangs.dir, "compiling")) == 1 })

	t.Setenv("MLXGRAD_CACHE", base)
	forget()
	_, err = CacheDir()
	require.NoError(t, err)
	work := files(t, dir, "compile-*")
	require.Len(t, work, 1, "the compilation is running")
	age(t, work[0], 2*day)
	forget()
	_, err = CacheDir()
	require.NoError(t, err)
	require.Equal(t, work, files(t, dir, "compile-*"), "an old folder of a running compilation stays")

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	forget()
	_, err = CacheDir()
	require.NoError(t, err)
	require.Empty(t, files(t, dir, "compile-*"))
}
