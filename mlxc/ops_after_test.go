package mlxc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestAfter(t *testing.T) {
	for name, after := range map[string]func(a *mlxc.Array, others ...*mlxc.Array) *mlxc.Array{
		"After": (*mlxc.Array).After, "AfterCompletion": (*mlxc.Array).AfterCompletion,
	} {
		t.Run(name, func(t *testing.T) { testAfter(t, after) })
	}
}

func testAfter(t *testing.T, after func(a *mlxc.Array, others ...*mlxc.Array) *mlxc.Array) {
	x, y := mlxc.FromSlice([]float32{1, 2}), mlxc.FromSlice([]float32{3, 4})
	first, second := y.Square(), y.Sqrt()
	z := after(x, first, second)
	require.False(t, first.IsReady())
	require.Equal(t, []float32{1, 2}, floats(t, z))
	require.True(t, first.IsReady(), "the evaluation of z computes it")
	require.True(t, second.IsReady())
	require.Equal(t, []float32{1, 2}, floats(t, after(x)))

	_, grads, err := mlxc.VJP(func(a arrays) arrays {
		return arrays{after(a[0], a[1]).Square()}
	}, arrays{x, y}, arrays{y})
	require.NoError(t, err)
	require.Equal(t, []float32{6, 16}, floats(t, grads[0]))
	require.Equal(t, []float32{0, 0}, floats(t, grads[1]))

	wrong := x.Add(mlxc.Ones(mlxc.Float32, 3))
	require.ErrorContains(t, after(x, y, wrong).Err(), "add")
	require.ErrorContains(t, after(wrong, y).Err(), "add")
	require.ErrorIs(t, after(x, nil).Err(), mlxc.ErrNil)
}

// An array ordered after a failed evaluation fails at every evaluation.
func TestAfterFailsForGood(t *testing.T) {
	for name, after := range map[string]func(a *mlxc.Array, others ...*mlxc.Array) *mlxc.Array{
		"After": (*mlxc.Array).After, "AfterCompletion": (*mlxc.Array).AfterCompletion,
	} {
		t.Run(name, func(t *testing.T) {
			// MLX has no matrix inverse for GPUs.
			require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() { testAfterFails(t, after) }))
		})
	}
}

func testAfterFails(t *testing.T, after func(a *mlxc.Array, others ...*mlxc.Array) *mlxc.Array) {
	inverse := mlxc.Zeros(mlxc.Float32, 2, 2).Inv()
	x := mlxc.Ones(mlxc.Float32, 2, 2)
	for range 4 {
		x = after(x, inverse)
	}
	sum, other := x.Add(inverse), x.Sub(inverse)
	require.Error(t, mlxc.Eval(sum, other))
	require.Error(t, mlxc.Eval(sum))
	require.Error(t, mlxc.Eval(other))
}

// A chain does not keep its earlier arrays alive.
func TestAfterCompletionOfALongChain(t *testing.T) {
	x := mlxc.FromSlice([]float32{1})
	for range 300_000 {
		next := x.AfterCompletion()
		x.Free()
		x = next
	}
	require.Equal(t, []float32{1}, floats(t, x))
	x.Free()
}
