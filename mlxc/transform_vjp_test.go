package mlxc_test

import (
	"errors"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

type arrays = []*mlxc.Array

var floats = mlxtest.Read[float32]

// f(x, w) = Σ x²·w has the gradients 2·x·w and x².
func weighted(args arrays) arrays {
	return arrays{args[0].Square().Mul(args[1]).Sum()}
}

func TestValueAndGrad(t *testing.T) {
	x, w := mlxc.FromSlice([]float32{1, 2, 3}), mlxc.FromSlice([]float32{4, 5, 6})
	values, grads, err := mlxc.ValueAndGrad(weighted, 0, 1)(arrays{x, w})
	require.NoError(t, err)
	require.Equal(t, []float32{4 + 20 + 54}, floats(t, values[0]))
	require.Equal(t, []float32{8, 20, 36}, floats(t, grads[0]))
	require.Equal(t, []float32{1, 4, 9}, floats(t, grads[1]))

	_, grads, err = mlxc.ValueAndGrad(weighted)(arrays{x, w})
	require.NoError(t, err)
	require.Len(t, grads, 1)

	_, _, err = mlxc.ValueAndGrad(weighted, 2)(arrays{x, w})
	require.ErrorContains(t, err, "argnums are [2]")
	_, _, err = mlxc.ValueAndGrad(func(a arrays) arrays { return a })(arrays{x})
	requireMessage(t, err, "mlxc: ValueAndGrad float32(3): the function's first result float32(3): it must be a "+
		"scalar, of shape (): take its Sum or Mean")
	_, err = mlxc.Grad(func(a arrays) arrays { return arrays{a[0].Take(a[1], 0).Sum()} },
		1)(arrays{x, mlxc.FromSlice([]int32{1})})
	requireMessage(t, err, "mlxc: Grad float32(3), int32(1): argument 1 is int32, which has no gradient: remove it "+
		"from argnums")
	_, err = mlxc.Grad(func(a arrays) arrays { return arrays{a[0].AsType(mlxc.Bool).Sum()} })(arrays{x})
	require.ErrorContains(t, err, "the function's first result int32(): it has no gradient: return a floating-point "+
		"number")
}

func TestAsFunc(t *testing.T) {
	square := func(a arrays) arrays { return arrays{a[0].Square().Sum()} }
	x := mlxc.FromSlice([]float32{1, 2, 3})
	require.Equal(t, []float32{2, 4, 6}, floats(t, mlxc.AsFunc(mlxc.Grad(square))(arrays{x})[0]))
	none := errors.New("none")
	failing := mlxc.AsFunc(func(arrays) (arrays, error) { return nil, none })
	require.ErrorIs(t, failing(nil)[0].Err(), none)
	_, _, err := mlxc.VJP(failing, arrays{x}, arrays{x})
	require.ErrorIs(t, err, none)
	_, err = mlxc.Grad(mlxc.AsFunc(nil))(arrays{x})
	require.ErrorContains(t, err, "the function is nil")
}

func TestValueAndGradKeepsTheOrderOfItsArguments(t *testing.T) {
	x, w := mlxc.FromSlice([]float32{1, 2, 3}), mlxc.FromSlice([]float32{4, 5, 6})
	_, grads, err := mlxc.ValueAndGrad(weighted, 1, 0)(arrays{x, w})
	require.NoError(t, err)
	require.Equal(t, []float32{1, 4, 9}, floats(t, grads[0]))
	require.Equal(t, []float32{8, 20, 36}, floats(t, grads[1]))
	_, _, err = mlxc.ValueAndGrad(weighted, 1, 1)(arrays{x, w})
	require.ErrorContains(t, err, "name an argument twice")
}

// Every output gets its own cotangent, including an output without a gradient and a repeated output.
func TestVJPPairsCotangentsWithOutputs(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2, 3})
	ones, hundreds := mlxc.Ones(mlxc.Float32, 3), mlxc.Full(mlxc.Float32, mlxc.Scalar[float32](100), 3)
	_, grads, err := mlxc.VJP(func(a arrays) arrays { return arrays{a[0].StopGradient(), a[0].Square()} },
		arrays{x}, arrays{hundreds, ones})
	require.NoError(t, err)
	require.Equal(t, []float32{2, 4, 6}, floats(t, grads[0]))
	_, grads, err = mlxc.VJP(func(a arrays) arrays { y := a[0].Square(); return arrays{y, y} }, arrays{x},
		arrays{ones, ones})
	require.NoError(t, err)
	require.Equal(t, []float32{4, 8, 12}, floats(t, grads[0]))
	_, _, err = mlxc.VJP(func(a arrays) arrays { return a }, arrays{x}, arrays{x, x})
	require.ErrorContains(t, err, "1 outputs, but there are 2 cotangents")
}

type model struct {
	weights *mlxc.Array
	step    *mlxc.Compiled
}
