package ops

import (
	"fmt"
	"slices"
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

// However many classes a slice has, loss and gradients are those of the whole.
func TestLinearCrossEntropyInSlices(t *testing.T) {
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
			for _, slice := range []int{1, 50, classes} {
				t.Run(fmt.Sprint(dtype, cfg.Reduction, slice), func(t *testing.T) {
					got, grads, err := mlxc.VJP(linearLossOf(targets, func(hidden, weight, targets *mlxc.Array) *mlxc.Array {
						return linearCrossEntropy(hidden, weight, targets, cfg, slice)
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

// What is captured has no gradient, and none is computed for it: by the number of matrix
// products in the graph. Logits of one slice are kept.
func TestLinearCrossEntropyComputesWhatIsWanted(t *testing.T) {
	const classes = 9
	args, targets := arrays{normal(1, mlxc.Float32, 6, 4), normal(2, mlxc.Float32, classes, 4)}, someTargets(6, classes)
	for _, reduction := range []Reduction{Mean, None} {
		cfg := CrossEntropyConfig{Reduction: reduction}
		loss := func(f func(hidden, weight, targets *mlxc.Array) *mlxc.Array, argnums []int) mlxc.Func {
			return func(traced arrays) arrays {
				all := slices.Clone(args)
				for i, n := range argnums {
					all[n] = traced[i]
				}
				return arrays{f(all[0], all[1], targets).Square().Sum()}
			}
		}
		for _, slice := range []int{3, classes} {
			for _, argnums := range [][]int{{0, 1}, {0}, {1}} {
				t.Run(fmt.Sprint(reduction, slice, argnums), func(t *testing.T) {
					var of arrays
					for _, n := range argnums {
						of = append(of, args[n])
					}
					gradient := func(f func(hidden, weight, targets *mlxc.Array) *mlxc.Array) mlxc.Func {
						return func(of arrays) arrays {
							_, grads, err := mlxc.ValueAndGrad(loss(f, argnums), []int{0, 1}[:len(argnums)]...)(of)
							require.NoError(t, err)
							return grads
						}
					}
					ours := gradient(func(hidden, weight, targets *mlxc.Array) *mlxc.Array {
						return linearCrossEntropy(hidden, weight, targets, cfg, slice)
					})
					want, got := gradient(linearLossOfMLX(cfg))(of), ours(of)
					for i := range of {
						closeTo(t, want[i], got[i])
					}

					nodes, err := mlxc.Trace(func(of arrays) (grads arrays) {
						mlxc.WithPlaceholderGPU(func() { grads = ours(of) })
						return grads
					}, of)
					require.NoError(t, err)
					products := 0
					for _, node := range nodes {
						if node.Primitive == "Matmul" {
							products++
						}
					}
					wantProducts := 1 + len(argnums) // of all classes
					if slice < classes {
						wantProducts = classes / slice * (2 + len(argnums))
					}
					require.Equal(t, wantProducts, products)
				})
			}
		}
	}
}

// The logits are never all there: of 32 slices there are two or three at a time, and of
// one slice what the gradient needs.
func TestLinearCrossEntropyMemory(t *testing.T) {
	const rows, width, classes, slice = 4096, 4, 4096, 128
	const sliceBytes = rows * slice * 4
	hidden, weight := normal(1, mlxc.Float32, rows, width), normal(2, mlxc.Float32, classes, width)
	targets := someTargets(rows, classes)
	require.NoError(t, mlxc.Eval(hidden, weight, targets))
	f := func(hidden, weight, targets *mlxc.Array) *mlxc.Array {
		return linearCrossEntropy(hidden, weight, targets, CrossEntropyConfig{}, slice)
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
			t.Logf("peak %.1f slices of %d", float64(p)/sliceBytes, classes/slice)
			require.Less(t, p, 8*sliceBytes)
		})
	}
}
