package mlxc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// An inner transform of a function that captures arrays of an outer one leaves them traced, so their evaluation keeps
// the graph of the outer gradient.
func TestNestedTransformsKeepCapturedArraysTraced(t *testing.T) {
	x, one := mlxc.FromSlice([]float32{1, 2, 3}), mlxc.Scalar[float32](1)
	inner := map[string]func(f mlxc.Func, at *mlxc.Array) (value, result *mlxc.Array, err error){
		"VJP": func(f mlxc.Func, at *mlxc.Array) (*mlxc.Array, *mlxc.Array, error) {
			values, grads, err := mlxc.VJP(f, arrays{at}, arrays{one})
			return values[0], grads[0], err
		},
		"ValueAndGrad": func(f mlxc.Func, at *mlxc.Array) (*mlxc.Array, *mlxc.Array, error) {
			values, grads, err := mlxc.ValueAndGrad(f)(arrays{at})
			return values[0], grads[0], err
		},
		"JVP": func(f mlxc.Func, at *mlxc.Array) (*mlxc.Array, *mlxc.Array, error) {
			values, tangents, err := mlxc.JVP(f, arrays{at}, arrays{mlxc.Ones(mlxc.Float32, 3)})
			return values[0], tangents[0], err
		},
	}
	for name, transform := range inner {
		t.Run(name, func(t *testing.T) {
			_, grads, err := mlxc.VJP(func(p arrays) arrays {
				y, constant := p[0].MulScalar(2), x.MulScalar(2)
				f := func(a arrays) arrays { return arrays{a[0].Mul(y).Mul(constant).Sum()} } // Σ 4·a·p·x
				for _, at := range (arrays{x, p[0]}) {
					value, result, err := transform(f, at)
					require.NoError(t, err)
					require.True(t, y.IsTraced())
					require.True(t, value.IsTraced())
					require.True(t, result.IsTraced())
					require.False(t, constant.IsTraced())
					require.NoError(t, mlxc.Eval(value, result, y))
				}
				_, result, err := transform(f, p[0])
				require.NoError(t, err)
				return arrays{result.Sum().Add(y.Square().Sum())} // Σ 4·p·x + Σ 4·p²
			}, arrays{x}, arrays{one})
			require.NoError(t, err)
			require.Equal(t, []float32{12, 24, 36}, floats(t, grads[0]))
		})
	}

	// MLX adds the two cotangents of a, which are y, an array of the outer transform.
	_, grads, err := mlxc.VJP(func(p arrays) arrays {
		y := p[0].MulScalar(2)
		_, grads, err := mlxc.VJP(func(a arrays) arrays { return arrays{a[0].Add(a[0])} }, arrays{x}, arrays{y})
		require.NoError(t, err)
		require.NoError(t, mlxc.Eval(grads...))
		return arrays{grads[0].Sum()}
	}, arrays{x}, arrays{one})
	require.NoError(t, err)
	require.Equal(t, []float32{4, 4, 4}, floats(t, grads[0]))

	// The rule of a custom gradient contains an inner transform that captures y.
	_, grads, err = mlxc.VJP(func(p arrays) arrays {
		y := p[0].MulScalar(2)
		custom := mlxc.CustomVJP(func(a arrays) arrays { return arrays{a[0].MulScalar(1)} },
			func(primals, cotangents, _ arrays) arrays {
				_, grads, err := mlxc.VJP(func(b arrays) arrays { return arrays{b[0].Mul(y).Sum()} }, primals, arrays{one})
				require.NoError(t, err)
				return grads
			})
		_, grads, err := mlxc.VJP(custom, arrays{x}, arrays{x})
		require.NoError(t, err)
		require.NoError(t, mlxc.Eval(y))
		return arrays{grads[0].Add(y).Sum()}
	}, arrays{x}, arrays{one})
	require.NoError(t, err)
	require.Equal(t, []float32{4, 4, 4}, floats(t, grads[0]))

	// A function that does not depend on an outer array has untraced results.
	_, _, err = mlxc.VJP(func(p arrays) arrays {
		values, grads, err := mlxc.VJP(func(a arrays) arrays { return arrays{a[0].Square().Sum()} }, arrays{x}, arrays{one})
		require.NoError(t, err)
		require.False(t, values[0].IsTraced())
		require.NotNil(t, grads)
		return arrays{p[0].Sum()}
	}, arrays{x}, arrays{one})
	require.NoError(t, err)
}
