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
	_, _, err = optim.ClipByGlobalNorm(params{}, math.Inf(1))
	require.ErrorIs(t, err, mlxc.ErrNil)
	for _, limit := range []float64{1, math.Inf(1)} {
		nan, _, err = optim.ClipByGlobalNorm(params{
			mlxc.FromSlice([]float32{float32(math.Inf(1))}),
			mlxc.FromSlice([]float32{1}),
		}, limit)
		require.NoError(t, err)
		require.True(t, math.IsNaN(elements(t, nan)[1]))
	}
	_, _, err = optim.ClipByGlobalNorm(g, 0)
	requireMessage(t, err, "mlxc: optim.ClipByGlobalNorm: the limit is 0: it must be positive")
	_, _, err = optim.ClipByGlobalNorm(params{}, 1)
	require.ErrorIs(t, err, mlxc.ErrNil)
}

// The norm includes imaginary parts, the limit is exact in float64, and integers are refused.
func TestGlobalNormOfOtherDTypes(t *testing.T) {
	clipped, norm, err := optim.ClipByGlobalNorm(mlxc.FromSlice([]complex64{3, 4i}), 1)
	require.NoError(t, err)
	require.Equal(t, mlxc.Float32, norm.DType())
	require.Equal(t, 5.0, item(t, norm))
	z, err := mlxc.ToSlice[complex64](clipped)
	require.NoError(t, err)
	require.InDelta(t, 0.6, real(z[0]), 1e-6)
	require.InDelta(t, 0.8, imag(z[1]), 1e-6)

	require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() {
		clipped, _, err = optim.ClipByGlobalNorm(mlxc.FromSlice([]float64{3, 4}), 0.1)
		require.NoError(t, err)
		norm, err = optim.GlobalNorm(clipped)
		require.NoError(t, err)
		require.InDelta(t, 0.1, item(t, norm), 1e-15)
	}))
	for _, a := range []*mlxc.Array{mlxc.FromSlice([]int32{3, 4}), mlxc.FromSlice([]bool{true})} {
		_, _, err = optim.ClipByGlobalNorm(a, 1)
		require.ErrorContains(t, err, "it must be floating-point or complex")
	}
}
