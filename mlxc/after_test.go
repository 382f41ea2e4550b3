package mlxc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestAfter(t *testing.T) {
	x, y := mlxc.FromSlice([]float32{1, 2}), mlxc.FromSlice([]float32{3, 4})
	first, second := y.Square(), y.Sqrt()
	z := x.After(first, second)
	require.False(t, first.Available())
	require.Equal(t, []float32{1, 2}, floats(t, z))
	require.True(t, first.Available(), "it was computed before")
	require.True(t, second.Available())
	require.Equal(t, []float32{1, 2}, floats(t, x.After()))

	_, grads, err := mlxc.VJP(func(a arrays) arrays {
		return arrays{a[0].After(a[1]).Square()}
	}, arrays{x, y}, arrays{y})
	require.NoError(t, err)
	require.Equal(t, []float32{6, 16}, floats(t, grads[0]))
	require.Equal(t, []float32{0, 0}, floats(t, grads[1]))

	wrong := x.Add(mlxc.Ones(mlxc.Float32, 3))
	require.ErrorContains(t, x.After(y, wrong).Err(), "add")
	require.ErrorContains(t, wrong.After(y).Err(), "add")
	require.ErrorIs(t, x.After(nil).Err(), mlxc.ErrNil)
}
