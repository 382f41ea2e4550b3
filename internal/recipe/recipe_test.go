package recipe

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestID(t *testing.T) {
	type key struct{ n int }
	first := ID(key{1})
	require.Equal(t, first, ID(key{1}))
	require.NotEqual(t, first, ID(key{2}))
	seen := map[uint64]bool{}
	for i := range 3 * maxIDs {
		id := ID(i)
		require.False(t, seen[id])
		seen[id] = true
	}
	require.LessOrEqual(t, len(ids), maxIDs)
}
