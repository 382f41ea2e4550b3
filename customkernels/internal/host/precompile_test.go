package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A kernel is the same bytes with precompiled headers as with their text, which is read while others
// precompile them, and where what was kept is no such file.
func TestPrecompiledHeadersChangeNothing(t *testing.T) {
	c := compilers(t)[0]
	if c.clang() {
		t.Skip("clang reads the headers' text")
	}
	text := source(t, "rms_norm_like", "TYPE", "half", "READS", "4")
	t.Setenv("MLXGRAD_CACHE", t.TempDir())
	dir, err := CacheDir()
	require.NoError(t, err)
	precompiled := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, "*.gch"))
		require.NoError(t, err)
		return found
	}
	library := func() []byte {
		t.Helper()
		require.NoError(t, fill(t.Context(), c, dir, cacheKey(c, text), text))
		found, err := filepath.Glob(filepath.Join(dir, "*.so"))
		require.NoError(t, err)
		require.Len(t, found, 1)
		content, err := os.ReadFile(found[0])
		require.NoError(t, err)
		require.NoError(t, os.Remove(found[0]))
		return content
	}
	precompiling.Lock()
	content := library()
	precompiling.Unlock()
	require.Empty(t, precompiled())
	require.Equal(t, content, library())
	require.Len(t, precompiled(), 1)
	require.Equal(t, content, library(), "with what was kept")

	require.NoError(t, os.WriteFile(precompiled()[0], []byte("no such file"), 0o600))
	require.Equal(t, content, library())
}
