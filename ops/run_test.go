package ops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/checked"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Operations whose graphs were recorded also check their launches.
func TestCheckedLaunchesOfOperations(t *testing.T) {
	x, w, dy := normal(1, mlxc.Float32, 3, 50), normal(2, mlxc.Float32, 50), normal(3, mlxc.Float32, 3, 50)
	gradients := func() (all [][]float32) {
		_, grads, err := mlxc.VJP(norm(true, 1e-5, RMSNorm), arrays{x, w}, arrays{dy})
		require.NoError(t, err)
		return [][]float32{mlxtest.Floats(t, grads[0]), mlxtest.Floats(t, grads[1])}
	}
	want := gradients()
	t.Cleanup(checked.Set("1"))
	require.Equal(t, want, gradients())
	compiled := mlxc.Compile(norm(true, 1e-5, RMSNorm))
	defer compiled.Close()
	_, err := compiled.Call(x, w)
	require.ErrorContains(t, err, checked.Variable, "a launch without values cannot be checked")
}

// The caller of an operation may change the variables of a configuration before the gradient is taken.
func TestGradientAfterAChangeOfTheConfiguration(t *testing.T) {
	gradient := func(x *mlxc.Array, loss func(x *mlxc.Array) *mlxc.Array) []float32 {
		_, grads, err := mlxc.ValueAndGrad(func(in arrays) arrays { return arrays{loss(in[0])} })(arrays{x})
		require.NoError(t, err)
		return mlxtest.Floats(t, grads[0])
	}
	weight, targets := normal(2, mlxc.Float32, 7, 5), mlxc.FromSlice([]int32{0, 1, 2, 3})
	ignoring := func(changed bool) func(x *mlxc.Array) *mlxc.Array {
		return func(x *mlxc.Array) *mlxc.Array {
			ignored := 1
			loss := LinearCrossEntropy(x, weight, targets, CrossEntropyConfig{IgnoreIndex: &ignored})
			if changed {
				ignored = 3
			}
			return loss
		}
	}
	x := normal(1, mlxc.Float32, 4, 5)
	require.Equal(t, gradient(x, ignoring(false)), gradient(x, ignoring(true)))

	// The first call records the gradient for later ones, so the other operation computes the true gradient.
	q := normal(3, mlxc.Float32, 1, 1, 12, 8)
	got := gradient(q, func(x *mlxc.Array) *mlxc.Array {
		w := &Window{Left: 2}
		out := Attention(x, x, x, AttentionConfig{Window: w})
		w.Left = 5
		return out.Square().Sum()
	})
	require.Equal(t, gradient(q, func(x *mlxc.Array) *mlxc.Array {
		out, _ := AttentionLogSumExp(x, x, x, AttentionConfig{Window: &Window{Left: 2}})
		return out.Square().Sum()
	}), got)
}
