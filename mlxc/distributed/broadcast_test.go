package distributed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// An array may have more bytes than an axis can have elements.
func TestBroadcastOfALargeArray(t *testing.T) {
	g, err := Init(Any, false)
	require.NoError(t, err)
	same := g.broadcast(mlxc.Zeros(mlxc.Float32, 1<<17, 1<<13))
	require.NoError(t, same.Err())
	require.Equal(t, []int{1 << 17, 1 << 13}, same.Shape())
}
