package ops

import (
	"math"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestRangeOfIndices(t *testing.T) {
	for _, c := range []struct {
		array           *mlxc.Array
		least, greatest int64
	}{
		{mlxc.FromSlice([]int32{3, math.MinInt32, 7}), math.MinInt32, 7},
		{mlxc.FromSlice([]uint32{3, math.MaxUint32, 1}), 1, math.MaxUint32},
		{mlxc.Zeros(mlxc.Int32, 0), 0, 0},
	} {
		for range 2 {
			r, err := rangeOf(c.array)
			require.NoError(t, err)
			require.Equal(t, indexRange{c.least, c.greatest}, r)
		}
	}
	freed := mlxc.FromSlice([]int32{1})
	freed.Free()
	_, err := rangeOf(freed)
	require.ErrorIs(t, err, mlxc.ErrFreed)
}

// The cache does not keep arrays alive, and drops the ranges of arrays that the collector has freed.
func TestRangesOfCollectedArraysAreDropped(t *testing.T) {
	key := func() weak.Pointer[mlxc.Array] {
		a := mlxc.FromSlice([]int32{1, 2})
		_, err := rangeOf(a)
		require.NoError(t, err)
		key := weak.Make(a)
		_, cached := indexRanges.Load(key)
		require.True(t, cached)
		return key
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		_, cached := indexRanges.Load(key)
		return !cached
	}, 10*time.Second, time.Millisecond)
}
