package optim_test

import (
	"math"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/stretchr/testify/require"
)

func TestGlobalNorm(t *testing.T) {
	g := params{mlxc.FromSlice([]float32{3, 0, 0, 0}), mlxc.FromSlice([]float32{0, -4})}
	norm, err := optim.GlobalNorm(g)
	require.NoError(t, err)
	require.Equal(t, 5.0, item(t, norm))
	require.Equal(t, 0, norm.NDim())

	clipped, norm, err := optim.ClipByGlobalNorm(g, 1)
	require.NoError(t, err)
	require.Equal(t, 5.0, item(t, norm))
	require.InDeltaSlice(t, []float64{0.6, 0, 0, 0, 0, -0.8}, elements(t, clipped), 1e-7)
	clipped, _, err = optim.ClipByGlobalNorm(g, 5)
	require.NoError(t, err)
	require.Equal(t, elements(t, g), elements(t, clipped))
	clipped, _, err = optim.ClipByGlobalNorm(params{mlxc.Zeros(mlxc.Float32, 2), mlxc.Zeros(mlxc.Float32, 1)}, 1)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 0, 0}, elements(t, clipped))

	// Intermediate values exceed float16.
	large := mlxc.Full(mlxc.Float16, mlxc.Scalar[float32](60000), 4)
	half, norm, err := optim.ClipByGlobalNorm(large, 2)
	require.NoError(t, err)
	require.InEpsilon(t, 120000, item(t, norm), 1e-3)
	require.Equal(t, mlxc.Float16, half.DType())
	require.Equal(t, []float64{1, 1, 1, 1}, elements(t, half))

	nan, norm, err := optim.ClipByGlobalNorm(params{
		mlxc.FromSlice([]float32{float32(math.NaN())}),
		mlxc.FromSlice([]float32{1}),
	}, 1)
	require.NoError(t, err)
	require.True(t, math.IsNaN(item(t, norm)))
	require.True(t, math.IsNaN(elements(t, nan)[1]))

	for _, x := range []float32{1e30, float32(math.Inf(1))} {
		nan, norm, err = optim.ClipByGlobalNorm(params{mlxc.FromSlice([]float32{x}), mlxc.FromSlice([]float32{1})}, 1)
		require.NoError(t, err)
		require.True(t, math.IsInf(item(t, norm), 1))
		for _, v := range elements(t, nan) {
			require.True(t, math.IsNaN(v))
		}
	}
	_, _, err = optim.ClipByGlobalNorm(g, 0)
	requireMessage(t, err, "mlxc: optim.ClipByGlobalNorm: the limit is 0: it must be positive")
	_, _, err = optim.ClipByGlobalNorm(params{}, 1)
	require.ErrorIs(t, err, mlxc.ErrNil)
}
