package cuda

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The vocabulary is one text: nothing is left to include, and every header is there once.
func TestVocabulary(t *testing.T) {
	text, err := Vocabulary()
	require.NoError(t, err)
	require.NotContains(t, text, "#include")
	for _, word := range []string{"struct thread_position", "simdgroup_matrix", "struct swizzle", "atomic_fetch_##NAME", "MLXG_INLINE float exp1"} {
		require.Contains(t, text, word)
	}
	require.Equal(t, 1, strings.Count(text, "struct thread_position"))
	for line := range strings.Lines(text) {
		require.False(t, strings.HasPrefix(line, "//") || strings.HasPrefix(line, " "), line)
	}
}

func TestAvailableLooksWhereMLXDoes(t *testing.T) {
	t.Setenv("CUDA_PATH", "")
	t.Setenv("CUDA_HOME", t.TempDir())
	require.ErrorIs(t, Available(), ErrNoToolkit)
	require.ErrorContains(t, Available(), "CUDA_HOME")
}
