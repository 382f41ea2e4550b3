package customkernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestConstants(t *testing.T) {
	var one, numbers *mlxc.Array
	mlxc.WithScope(func() {
		one, numbers = Constant(uint32(1)), Constants[float32](1, float32(math.Inf(-1)), 3)
		require.Same(t, one, Constant(uint32(1)))
	})
	require.Same(t, one, Constant(uint32(1)), "it outlives the scope")
	require.Same(t, numbers, Constants[float32](1, float32(math.Inf(-1)), 3))

	require.True(t, one.IsReady())
	require.Empty(t, one.Shape())
	value, err := mlxc.Item[uint32](one)
	require.NoError(t, err)
	require.Equal(t, uint32(1), value)
	require.Equal(t, []int{3}, numbers.Shape())
	values, err := mlxc.ToSlice[float32](numbers)
	require.NoError(t, err)
	require.Equal(t, []float32{1, float32(math.Inf(-1)), 3}, values)

	// Constants with the same bits or the same first values are distinct arrays.
	for _, other := range []*mlxc.Array{
		Constant(int32(1)), Constant(math.Float32frombits(1)), Constants(uint32(1)), Constants(uint32(1), 0), Constants[float32](1, float32(math.Inf(-1))),
	} {
		require.NoError(t, other.Err())
		require.NotSame(t, one, other)
		require.NotSame(t, numbers, other)
	}
	require.ErrorContains(t, Constants[int32]().Err(), "0 values: there must be 1 to 16")
	require.ErrorContains(t, Constants(make([]int32, 17)...).Err(), "17 values: there must be 1 to 16")
}

// If a caller frees the shared array by mistake, the next call creates it again.
func TestFreedConstantIsRecreated(t *testing.T) {
	Constant(int32(77)).Free()
	value, err := mlxc.Item[int32](Constant(int32(77)))
	require.NoError(t, err)
	require.Equal(t, int32(77), value)
}

func TestConstantsAreBounded(t *testing.T) {
	first := Constant(uint32(1 << 20))
	for i := range uint32(3 * maxConstants) {
		Constant(1<<20 + i)
		require.LessOrEqual(t, len(constants.arrays), maxConstants)
	}
	require.NotSame(t, first, Constant(uint32(1<<20)))
	value, err := mlxc.Item[uint32](first)
	require.NoError(t, err, "the array of a caller stays valid after the cache is emptied")
	require.Equal(t, uint32(1<<20), value)
}
