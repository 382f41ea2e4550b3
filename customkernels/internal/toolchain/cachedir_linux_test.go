package toolchain

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// inNamespace runs the test again in a child process with a new mount namespace, where it can mount file systems
// that no other process sees. It reports whether this process is that child.
func inNamespace(t *testing.T) bool {
	t.Helper()
	const variable = "HOST_TEST_NAMESPACE"
	if os.Getenv(variable) == t.Name() {
		return true
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	start := func(args ...string) ([]byte, error) {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), variable+"="+t.Name(), copyVariable+"="+copyLibrary())
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if os.Geteuid() != 0 {
			cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
		}
		return cmd.CombinedOutput()
	}
	if out, err := start("mount", "-t", "tmpfs", "none", t.TempDir()); err != nil {
		skip.Platform(t, fmt.Sprintf("no file system can be mounted here: %v %s", err, out))
	}
	out, err := start(exe, "-test.run=^"+t.Name()+"$", "-test.v")
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

// mount mounts an empty tmpfs at the folder. With the option "remount" it changes the options of the mounted one, as soon
// as the kernel has released the Landlock rules of the last compilation, which refer to removed folders.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	eventually(t, func() bool {
		out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "none", dir).CombinedOutput()
		if err != nil {
			t.Logf("%v\n%s", err, out)
		}
		return err == nil
	})
	if !strings.HasPrefix(options, "remount") {
		t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	}
}

// If the cache's disk is full, read-only or mounted noexec, kernels are stored in the temporary folder. The log reports
// this once.
func TestUnusableDisk(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	// If the cache's parent folder holds a file "fill", the compiler fills the disk.
	c := newStandIn(t, `if [ -e ../../fill ]; then yes >filled 2>/dev/null; fi`)
	for _, disk := range []struct {
		name, options, again string
		fill                 bool
		says                 string
	}{
		{"full for the headers", "size=64k", "", false, "no space left on device"},
		{"full for the compiler", "size=10m", "", true, "No space left on device"},
		{"read-only", "size=10m", "remount,ro", false, "read-only file system"},
		{"noexec", "size=10m,noexec", "", false, ": mounted noexec"},
	} {
		t.Run(disk.name, func(t *testing.T) {
			dir := cold(t)
			want := fallback(t)
			log := logged(t)
			prepare := func(top string) {
				mount(t, top, "mode=0700,"+disk.options)
				require.NoError(t, os.Mkdir(filepath.Join(top, "host"), 0o700))
				if disk.fill {
					require.NoError(t, os.WriteFile(filepath.Join(top, "fill"), nil, 0o600))
				}
				if disk.again != "" {
					mount(t, top, disk.again)
				}
			}
			prepare(filepath.Dir(dir))
			for _, more := range []string{"", "// another"} {
				l, err := c.library(t.Context(), source(t, "copy")+more)
				require.NoError(t, err)
				works(t, l)
				now, err := CacheDir()
				require.NoError(t, err)
				require.Equal(t, want, now)
			}
			require.Equal(t, 1, strings.Count(log(), "compiled kernels are kept in a temporary folder"), log())
			require.Contains(t, log(), disk.says)
			require.Contains(t, log(), "folder="+want)
			require.Empty(t, files(t, dir, "compile-*"))

			// If the temporary folder is unusable too, the compilation fails.
			require.NoError(t, os.RemoveAll(want))
			prepare(filepath.Dir(want))
			forget()
			_, err := c.library(t.Context(), source(t, "copy")+"// a third")
			require.ErrorContains(t, err, "no folder can hold compiled kernels ("+dir+": ")
			require.ErrorContains(t, err, want+": ")
			require.ErrorContains(t, err, disk.says)
			require.ErrorContains(t, err, "set MLXGRAD_CACHE to a folder that only you can write, with 100 MB free, on a disk that is not mounted noexec")
		})
	}
}

// Kernels in a cache on a read-only disk, such as a container image, are loaded without compiling.
func TestReadOnlyCache(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	c := newStandIn(t, "")
	dir := cold(t)
	fallback(t)
	mount(t, filepath.Dir(dir), "mode=0700,size=10m")
	_, err := c.library(t.Context(), source(t, "copy"))
	require.NoError(t, err)
	mount(t, filepath.Dir(dir), "remount,ro")
	forget()
	l, err := c.library(t.Context(), source(t, "copy"))
	require.NoError(t, err)
	works(t, l)
	require.Equal(t, 1, c.starts(t, "kernel"))
}
