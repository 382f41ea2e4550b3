package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// nobody is the id of a user other than the user of the tests.
const nobody = 65534

// fallback sets TMPDIR to an empty folder for the test, and returns the path of the cache's fallback folder in it.
func fallback(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return filepath.Join(dir, fmt.Sprintf("mlxgrad-host-%d", os.Geteuid()))
}

func TestCacheWithoutHome(t *testing.T) {
	t.Setenv("CXX", newStandIn(t, "").path)
	cold(t)
	want := fallback(t)
	log := logged(t)
	t.Setenv("MLXGRAD_CACHE", "")
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	dir, err := CacheDir()
	require.NoError(t, err)
	require.Equal(t, want, dir)
	require.Contains(t, log(), "compiled kernels are kept in a temporary folder")
	require.Contains(t, log(), "HOME")
	works(t, compileFile(t, "copy"))

	// CacheDir refuses a file or a symbolic link in place of the folder.
	require.NoError(t, os.Rename(dir, dir+".real"))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	forget()
	_, err = CacheDir()
	require.ErrorContains(t, err, dir)
	require.ErrorContains(t, err, "set MLXGRAD_CACHE to a folder that only you can write")
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Symlink(dir+".real", dir))
	forget()
	_, err = CacheDir()
	require.ErrorContains(t, err, "not a folder")
}

// If other users could write the folder, CacheDir makes it private and removes all cached files.
func TestWritableFolderIsEmptied(t *testing.T) {
	t.Setenv("CXX", newStandIn(t, "").path)
	dir := cold(t)
	log := logged(t)
	works(t, compileFile(t, "copy"))
	mine := filepath.Join(dir, "photo.so")
	require.NoError(t, os.WriteFile(mine, nil, 0o600))

	// Read permission for others is harmless: the cached files stay.
	require.NoError(t, os.Chmod(dir, 0o755))
	forget()
	_, err := CacheDir()
	require.NoError(t, err)
	require.NotEmpty(t, files(t, dir, "*.key"))

	for _, mode := range []os.FileMode{0o777, 0o720, 0o702} {
		works(t, compileFile(t, "copy"))
		require.NotEmpty(t, files(t, dir, "*.key"))
		require.NoError(t, os.Chmod(dir, mode))
		forget()
		_, err := CacheDir()
		require.NoError(t, err)
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		require.Equal(t, []string{mine}, files(t, dir, "*.*"), "of mode %o", mode)
		require.Contains(t, log(), fmt.Sprintf("mode=%04o", mode))
	}
	require.Equal(t, 3, strings.Count(log(), "others could write the folder of compiled kernels, so it was emptied"))
}

// Cached files that another user owns or can write are not loaded. They are compiled again.
func TestUntrustedFilesAreNotLoaded(t *testing.T) {
	c := newStandIn(t, "")
	t.Setenv("CXX", c.path)
	taint := map[string]func(path string) error{
		"written by the group": func(path string) error { return os.Chmod(path, 0o620) },
		"written by all":       func(path string) error { return os.Chmod(path, 0o602) },
		"a link": func(path string) error {
			if err := os.Rename(path, path+".real"); err != nil {
				return err
			}
			return os.Symlink(path+".real", path)
		},
		"owned": func(path string) error { return os.Chown(path, nobody, -1) },
	}
	if os.Geteuid() != 0 {
		delete(taint, "owned")
		t.Log("NOT TESTED: files owned by another user, which only root can create")
	}
	for name, do := range taint {
		for extension, again := range map[string]string{".so": "kernel", ".key": "kernel", ".version": "", ".gch": "headers"} {
			dir := cold(t)
			works(t, compileFile(t, "copy"))
			if extension == ".gch" {
				if c.clang() {
					continue
				}
				require.NoError(t, os.Remove(files(t, dir, "*.so")[0]))
			}
			paths := files(t, dir, "*"+extension)
			require.NotEmpty(t, paths, extension)
			for _, path := range paths {
				require.NoError(t, do(path))
				require.False(t, Kept(path))
			}
			before := c.starts(t, again)
			forget()
			works(t, compileFile(t, "copy"))
			for _, path := range paths {
				require.True(t, Kept(path), "%s: %s", name, path)
			}
			if again != "" {
				require.Equal(t, before+1, c.starts(t, again), "%s: %s", name, extension)
			}
		}
	}
}

// If other users can replace the cache's folder, kernels are stored in the temporary folder.
func TestReplaceableFolder(t *testing.T) {
	want := fallback(t)
	for name, do := range map[string]struct {
		make func(dir string) error // changes the parent of the cache's folder
		says string                 // reason in the log; empty if the folder is used
		root bool
	}{
		"others can write":      {func(dir string) error { return os.Chmod(dir, 0o757) }, "open: writable by others (mode 0757)", false},
		"the group can write":   {func(dir string) error { return os.Chmod(dir, 0o775) }, "open: writable by others (mode 0775)", false},
		"sticky":                {func(dir string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }, "", false},
		"nobody else gets here": {func(dir string) error { return os.Chmod(dir, 0o722) }, "", false},
		"owned":                 {func(dir string) error { return os.Chown(dir, nobody, -1) }, "open: owned by user 65534", true},
		"the folder is owned": {func(dir string) error {
			if err := os.Mkdir(filepath.Join(dir, "host"), 0o755); err != nil {
				return err
			}
			return os.Chown(filepath.Join(dir, "host"), nobody, -1)
		}, "owned by user 65534", true},
	} {
		t.Run(name, func(t *testing.T) {
			if do.root && os.Geteuid() != 0 {
				skip.Platform(t, "only root can create a folder owned by another user")
			}
			cold(t)
			log := logged(t)
			top := os.Getenv("MLXGRAD_CACHE")
			require.NoError(t, os.Chmod(top, 0o755))
			// The test's own temporary folder would not do: other users cannot reach it.
			top, err := os.MkdirTemp("/tmp", "host-test-")
			require.NoError(t, err)
			t.Cleanup(func() { os.RemoveAll(top) })
			require.NoError(t, os.Chmod(top, 0o755))
			open := filepath.Join(top, "open")
			require.NoError(t, os.Mkdir(open, 0o755))
			require.NoError(t, do.make(open))
			t.Setenv("MLXGRAD_CACHE", open)
			for range 2 {
				dir, err := CacheDir()
				require.NoError(t, err)
				if do.says == "" {
					require.Equal(t, filepath.Join(open, "host"), dir)
					require.Empty(t, log())
					continue
				}
				require.Equal(t, want, dir)
				require.Contains(t, log(), do.says)
				require.Contains(t, log(), "folder="+want)
				require.Equal(t, 1, strings.Count(log(), "compiled kernels are kept in a temporary folder"))
			}
		})
	}
}

// When the cache's disk becomes full, later kernels are stored in the temporary folder. Kernels that are already on the
// full disk are still loaded from it.
func TestDiskBecomesFull(t *testing.T) {
	dir := cold(t)
	want := fallback(t)
	log := logged(t)
	for number, says := range []string{
		"as: can't write 40 bytes to section .text of x.o: 'No space left on device'",
		"fatal error: error writing to x.s: Disk quota exceeded",
		"ld: final link failed: Read-only file system",
	} {
		text := source(t, "copy") + fmt.Sprintf("// %d\n", number)
		full := newStandIn(t, `case $PWD in `+dir+`/*) if [ -e $DIR/full ]; then echo "`+says+`" >&2; exit 1; fi;; esac`)
		l, err := full.library(t.Context(), text)
		require.NoError(t, err)
		works(t, l)
		require.NoError(t, os.WriteFile(filepath.Join(full.dir, "full"), nil, 0o600))
		require.NotContains(t, log(), says)
		l, err = full.library(t.Context(), text+"// another\n")
		require.NoError(t, err)
		works(t, l)
		now, err := CacheDir()
		require.NoError(t, err)
		require.Equal(t, want, now)
		require.Equal(t, number+1, strings.Count(log(), "compiled kernels are kept in a temporary folder"), log())
		require.Contains(t, log(), dir+": "+diskWords.FindString(says))
		kernels := full.starts(t, "kernel")
		cache.mu.Lock()
		clear(cache.loaded)
		cache.mu.Unlock()
		l, err = full.library(t.Context(), text)
		require.NoError(t, err)
		works(t, l)
		require.Equal(t, kernels, full.starts(t, "kernel"), "the library on the full disk is loaded")
		forget()
		require.NoError(t, os.RemoveAll(want))
	}
}
