package mlxc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestIsTracedForDependentsOfArguments(t *testing.T) {
	x, w := mlxc.FromSlice([]float32{1, 2}), mlxc.FromSlice([]float32{3, 4})
	product := mlxc.CustomVJP(func(a arrays) arrays {
		require.True(t, a[0].IsTraced())
		require.False(t, a[1].IsTraced())
		return arrays{a[0].Mul(a[1])}
	}, func(primals, cotangents, _ arrays) arrays {
		return arrays{cotangents[0].Mul(primals[1]), cotangents[0].Mul(primals[0])}
	})
	f := func(a arrays) arrays {
		require.True(t, a[0].IsTraced())
		require.True(t, a[0].Square().IsTraced())
		require.False(t, w.IsTraced(), "captured")
		require.False(t, w.Square().IsTraced())
		return arrays{product(arrays{a[0].Square(), w})[0].Sum()}
	}
	_, grads, err := mlxc.ValueAndGrad(f)(arrays{x})
	require.NoError(t, err)
	require.Equal(t, []float32{6, 16}, floats(t, grads[0]))
	_, grads, err = mlxc.VJP(f, arrays{x}, arrays{mlxc.Scalar[float32](1)})
	require.NoError(t, err)
	require.Equal(t, []float32{6, 16}, floats(t, grads[0]))

	compiled := mlxc.Compile(func(a arrays) arrays {
		require.True(t, a[1].IsTraced(), "under Compile, every argument is traced")
		_, grads, err := mlxc.ValueAndGrad(f)(a)
		require.NoError(t, err)
		return grads
	})
	defer compiled.Close()
	out, err := compiled.Call(x, x)
	require.NoError(t, err)
	require.Equal(t, []float32{6, 16}, floats(t, out[0]))

	require.False(t, x.IsTraced())
	require.False(t, x.Square().IsTraced())
	require.False(t, x.Add(mlxc.Ones(mlxc.Float32, 3)).IsTraced())
	require.False(t, (*mlxc.Array)(nil).IsTraced())
}
