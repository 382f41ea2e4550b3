package ops

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// linearLossOf is the loss as a function of hidden and weight.
func linearLossOf(targets *mlxc.Array, f func(hidden, weight, targets *mlxc.Array) *mlxc.Array) mlxc.Func {
	return func(args arrays) arrays { return arrays{f(args[0], args[1], targets)} }
}

// linearLossOfMLX is MLX's composition, which holds all logits.
func linearLossOfMLX(cfg CrossEntropyConfig) func(hidden, weight, targets *mlxc.Array) *mlxc.Array {
	return func(hidden, weight, targets *mlxc.Array) *mlxc.Array {
		return crossEntropyOfMLX(hidden.MatMul(weight.Transpose()), targets, cfg)
	}
}

// However many rows a chunk has, loss and gradients are those of the whole.
func TestLinearCrossEntropyInChunks(t *testing.T) {
	const rows, width, classes = 23, 17, 130
	zero := 0
	for _, dtype := range gradientDTypes {
		for _, cfg := range []CrossEntropyConfig{
			{},
			{Reduction: Sum, SoftCap: 2, ZLoss: 0.01},
			{Reduction: None, LabelSmoothing: 0.1, IgnoreIndex: &zero},
		} {
			hidden, weight, targets := normal(1, dtype, rows, width), normal(2, dtype, classes, width).MulScalar(0.2), someTargets(rows, classes)
			dloss := mlxc.Scalar[float32](1.5)
			if cfg.Reduction == None {
				dloss = normal(3, mlxc.Float32, rows)
			}
			want, wantGrads, err := mlxc.VJP(linearLossOf(targets, linearLossOfMLX(cfg)), arrays{hidden, weight}, arrays{dloss})
			require.NoError(t, err)
			for _, chunk := range []int{1, 7, rows} {
				t.Run(fmt.Sprint(dtype, cfg.Reduction, chunk), func(t *testing.T) {
					got, grads, err := mlxc.VJP(linearLossOf(targets, func(hidden, weight, targets *mlxc.Array) *mlxc.Array {
						return linearCrossEntropy(hidden, weight, targets, cfg, chunk)
					}), arrays{hidden, weight}, arrays{dloss})
					require.NoError(t, err)
					closeTo(t, want[0], got[0])
					closeTo(t, wantGrads[0], grads[0])
					closeTo(t, wantGrads[1], grads[1])
				})
			}
		}
	}
}

// A weight that is captured has no gradient, and none is computed for it: by the number
// of matrix products in the graph.
func TestLinearCrossEntropyOfFrozenWeight(t *testing.T) {
	hidden, weight, targets := normal(1, mlxc.Float32, 6, 4), normal(2, mlxc.Float32, 9, 4), someTargets(6, 9)
	for _, reduction := range []Reduction{Mean, None} {
		loss := func(f func(hidden, weight, targets *mlxc.Array) *mlxc.Array) mlxc.Func {
			return func(args arrays) arrays {
				w := weight
				if len(args) > 1 {
					w = args[1]
				}
				return arrays{f(args[0], w, targets).Square().Sum()}
			}
		}
		cfg := CrossEntropyConfig{Reduction: reduction}
		ours := loss(func(hidden, weight, targets *mlxc.Array) *mlxc.Array {
			return linearCrossEntropy(hidden, weight, targets, cfg, 3)
		})
		products := func(args arrays, argnums ...int) int {
			nodes, err := mlxc.Trace(func(args arrays) (grads arrays) {
				mlxc.WithPlaceholderGPU(func() {
					var err error
					_, grads, err = mlxc.ValueAndGrad(ours, argnums...)(args)
					require.NoError(t, err)
				})
				return grads
			}, args)
			require.NoError(t, err)
			n := 0
			for _, node := range nodes {
				if node.Primitive == "Matmul" {
					n++
				}
			}
			return n
		}
		const chunks = 2
		require.Equal(t, chunks, products(arrays{hidden, weight}, 0, 1)-products(arrays{hidden}))

		_, want, err := mlxc.ValueAndGrad(loss(linearLossOfMLX(cfg)))(arrays{hidden})
		require.NoError(t, err)
		_, got, err := mlxc.ValueAndGrad(ours)(arrays{hidden})
		require.NoError(t, err)
		closeTo(t, want[0], got[0])
	}
}

// The logits are never all there: of 64 chunks, there are about as many at a time as
// MLX has operations in flight, which are ten.
func TestLinearCrossEntropyMemory(t *testing.T) {
	const rows, width, classes, chunk = 4096, 4, 4096, 64
	const chunkBytes = chunk * classes * 4
	hidden, weight := normal(1, mlxc.Float32, rows, width), normal(2, mlxc.Float32, classes, width)
	targets := someTargets(rows, classes)
	require.NoError(t, mlxc.Eval(hidden, weight, targets))
	f := func(hidden, weight, targets *mlxc.Array) *mlxc.Array {
		return linearCrossEntropy(hidden, weight, targets, CrossEntropyConfig{}, chunk)
	}
	peak := func(run func() arrays) int {
		before := mlxc.ActiveMemory()
		mlxc.ResetPeakMemory()
		mlxc.WithScope(func() { require.NoError(t, mlxc.Eval(run()...)) })
		return mlxc.PeakMemory() - before
	}
	for name, run := range map[string]func() arrays{
		"loss": func() arrays { return arrays{f(hidden, weight, targets)} },
		"loss and gradients": func() arrays {
			values, grads, err := mlxc.ValueAndGrad(linearLossOf(targets, f), 0, 1)(arrays{hidden, weight})
			require.NoError(t, err)
			return append(values, grads...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := peak(run)
			t.Logf("peak %.1f chunks of %d", float64(p)/chunkBytes, rows/chunk)
			require.Less(t, p, 12*chunkBytes)
		})
	}
}
