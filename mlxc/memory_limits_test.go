package mlxc_test

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

func TestMemoryLimits(t *testing.T) {
	testdevice.CPUOnly(t, "a GPU queues all operations before it finishes the first, and keeps their inputs until then")
	before := mlxc.MemoryLimit()
	require.Positive(t, before)
	previous, err := mlxc.SetMemoryLimit(1 << 30)
	require.NoError(t, err)
	require.Equal(t, before, previous)
	require.Equal(t, 1<<30, mlxc.MemoryLimit())
	// The limit is not a hard bound.
	_, err = mlxc.SetMemoryLimit(1 << 10)
	require.NoError(t, err)
	require.Equal(t, []float32{1 << 20}, floats(t, mlxc.Ones(mlxc.Float32, 1<<20).Sum()))
	previous, err = mlxc.SetMemoryLimit(before)
	require.NoError(t, err)
	require.Equal(t, 1<<10, previous)

	// Freed memory is kept up to the limit.
	fill := func() {
		x := mlxc.Ones(mlxc.Float32, 1<<20)
		require.NoError(t, mlxc.Eval(x))
		x.Free()
	}
	mlxc.ClearCache()
	kept, err := mlxc.SetCacheLimit(16 << 20)
	require.NoError(t, err)
	fill()
	require.GreaterOrEqual(t, mlxc.CacheMemory(), 4<<20)
	previous, err = mlxc.SetCacheLimit(0)
	require.NoError(t, err)
	require.Equal(t, 16<<20, previous)
	mlxc.ClearCache()
	fill()
	require.Zero(t, mlxc.CacheMemory())
	previous, err = mlxc.SetCacheLimit(kept)
	require.NoError(t, err)
	require.Zero(t, previous)
	wired, err := mlxc.SetWiredLimit(0)
	require.NoError(t, err)
	require.Zero(t, wired)

	for _, set := range []func(int) (int, error){mlxc.SetMemoryLimit, mlxc.SetCacheLimit, mlxc.SetWiredLimit} {
		_, err := set(-1)
		require.ErrorContains(t, err, "the limit is -1 bytes: it must be at least 0")
	}
}
