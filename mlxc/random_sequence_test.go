package mlxc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// The numbers come from mlx 0.32.2 in Python:
//
//	import mlx.core as mx
//	for s in (0, 1, 42, 2**64 - 1):
//	    mx.random.seed(s)
//	    print(mx.random.uniform(shape=(2,)).tolist(), mx.random.normal((2,)).tolist(),
//	          mx.random.randint(0, 1000, (3,)).tolist(), mx.random.bernoulli(0.5, (4,)).tolist(),
//	          mx.random.permutation(5).tolist())
func TestRandomSeedDrawsAsPython(t *testing.T) {
	for _, c := range []struct {
		seed            uint64
		uniform, normal []float64
		integers        []int32
		bernoulli       []bool
		permutation     []uint32
	}{
		{
			0,
			[]float64{0.5765508413314819, 0.2991722524166107},
			[]float64{0.008707307279109955, -0.048885006457567215},
			[]int32{13, 182, 304},
			[]bool{false, false, true, false},
			[]uint32{3, 1, 0, 2, 4},
		},
		{
			1,
			[]float64{0.20965856313705444, 0.404448539018631},
			[]float64{0.5752229690551758, 0.004251753445714712},
			[]int32{220, 275, 824},
			[]bool{true, false, false, false},
			[]uint32{4, 3, 0, 1, 2},
		},
		{
			42,
			[]float64{0.9559812545776367, 0.4032725691795349},
			[]float64{0.0931403711438179, -1.2585376501083374},
			[]int32{461, 769, 805},
			[]bool{true, true, true, false},
			[]uint32{0, 4, 2, 1, 3},
		},
		{
			math.MaxUint64,
			[]float64{0.3274266719818115, 0.6775552034378052},
			[]float64{1.7240859270095825, 0.5802947282791138},
			[]int32{581, 128, 682},
			[]bool{false, true, false, true},
			[]uint32{0, 3, 2, 1, 4},
		},
	} {
		mlxc.RandomSeed(c.seed)
		require.Equal(t, c.uniform, wide(t, mlxc.RandomUniform(nil, 0, 1, mlxc.Float32, 2)), c.seed)
		require.InDeltaSlice(t, c.normal, wide(t, mlxc.RandomNormal(nil, mlxc.Float32, 2)), 1e-6, c.seed)
		require.Equal(t, c.integers, read[int32](t, mlxc.RandomInt(nil, 0, 1000, mlxc.Int32, 3)), c.seed)
		require.Equal(t, c.bernoulli, read[bool](t, mlxc.RandomBernoulli(nil, mlxc.Scalar[float32](0.5), 4)), c.seed)
		require.Equal(t, c.permutation, read[uint32](t, mlxc.RandomPermutationArange(nil, 5)), c.seed)
	}
}
