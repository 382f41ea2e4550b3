package metalstd

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The text for CUDA includes nothing and holds every header once.
func TestCUDA(t *testing.T) {
	text, err := CUDA()
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
