package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// age makes a file or folder look as if it had last been written then.
func age(t *testing.T, path string, d time.Duration) {
	t.Helper()
	then := time.Now().Add(-d)
	require.NoError(t, os.Chtimes(path, then, then))
}

// What a process left that was ended while it compiled is removed in time, and not what another
// is working on; what is kept, when it was not used for 30 days before the last time.
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
		{"checked-out", 40 * day, false}, // a user's
		{"photo.so", 40 * day, false},
		{hash + ".so", 2 * day, false},
		{hash + ".key", 29 * day, false},
		{hash + ".checked", 33 * day, true},
		{hash + ".gch", 33 * day, true},
	}
	for _, e := range entries {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, e.name, "x"), 0o700))
		age(t, filepath.Join(dir, e.name), e.age)
	}
	look := func() (left []string) {
		t.Helper()
		checked.Clear() // as in a process of its own
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
	require.Equal(t, first, look(), "nobody knows when the cache was used")
	require.Equal(t, first, look(), "on one day")
	swept := filepath.Join(dir, "swept")
	age(t, swept, 2*day)
	require.Equal(t, want, look(), "on the next")

	age(t, filepath.Join(dir, hash+".so"), 33*day)
	age(t, filepath.Join(dir, hash+".key"), 33*day)
	age(t, swept, 32*day)
	require.Equal(t, want, look(), "nothing was used since")
	age(t, swept, 2*day)
	require.True(t, Kept(filepath.Join(dir, hash+".key")))
	require.Equal(t, []string{"compile-3", "checked-out", "photo.so", hash + ".key"}, look())
	require.False(t, Kept(filepath.Join(dir, hash+".so")))
}

// Whatever a kernel's library is found by counts as used.
func TestWhatIsLoadedIsUsed(t *testing.T) {
	cold(t)
	text := source(t, "copy")
	_, err := Compile(t.Context(), text)
	require.NoError(t, err)
	dir, err := CacheDir()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "*.*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		age(t, path, 20*day)
	}
	forget()
	versions.Clear()
	_, err = Compile(t.Context(), text)
	require.NoError(t, err)
	for _, path := range files {
		info, err := os.Stat(path)
		require.NoError(t, err)
		if filepath.Ext(path) != ".gch" { // used by compilations only
			require.Less(t, time.Since(info.ModTime()), day, path)
		}
	}
}
