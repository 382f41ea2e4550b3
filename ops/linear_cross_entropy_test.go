package ops

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

type linearLossFunc func(hidden, weight, targets *mlxc.Array) *mlxc.Array

// linearLossOf returns f as a function of hidden and weight.
func linearLossOf(targets *mlxc.Array, f linearLossFunc) mlxc.Func {
	return func(args arrays) arrays { return arrays{f(args[0], args[1], targets)} }
}

// linearLossMLX returns the loss composed of MLX operations, which keeps all logits in memory.
func linearLossMLX(cfg CrossEntropyConfig) linearLossFunc {
	return func(hidden, weight, targets *mlxc.Array) *mlxc.Array {
		return crossEntropyMLX(hidden.MatMul(weight.Transpose()), targets, cfg)
	}
}

// sliced returns the loss in slices of `slice` classes, with the logits of `kept` slices kept for the gradient.
func sliced(cfg CrossEntropyConfig, slice, kept int) linearLossFunc {
	return func(hidden, weight, targets *mlxc.Array) *mlxc.Array {
		return linearCrossEntropy(hidden, weight, targets, cfg, classPlan{slice, kept}, false)
	}
}

// Loss and gradients do not depend on the number of classes in a slice.
func TestLinearCrossEntropyInSlices(t *testing.T) {
	const rows, width, classes = 23, 17, 130
	zero := 0
	for _, dtype := range gradientDTypes {
		for _, cfg := range []CrossEntropyConfig{
			{},
			{Reduction: ReductionSum, SoftCap: 2, ZLoss: 0.01},
			{Reduction: ReductionNone, LabelSmoothing: 0.1, IgnoreIndex: &zero},
		} {
			hidden, weight := normal(1, dtype, rows, width), normal(2, dtype, classes, width).MulScalar(0.2)
			targets := someTargets(rows, classes)
			dloss := mlxc.Scalar[float32](1.5)
			if cfg.Reduction == ReductionNone {
				dloss = normal(3, mlxc.Float32, rows)
			}
			ofMLX := linearLossOf(targets, linearLossMLX(cfg))
			want, wantGrads, err := mlxc.VJP(ofMLX, arrays{hidden, weight}, arrays{dloss})
			require.NoError(t, err)
			for _, plan := range []classPlan{{1, 0}, {1, 100}, {50, 0}, {50, 2}, {50, 3}, {classes, 1}} {
				t.Run(fmt.Sprint(dtype, cfg.Reduction, plan), func(t *testing.T) {
					ours := linearLossOf(targets, sliced(cfg, plan.slice, plan.kept))
					got, grads, err := mlxc.VJP(ours, arrays{hidden, weight}, arrays{dloss})
					require.NoError(t, err)
					closeTo(t, want[0], got[0])
					closeTo(t, wantGrads[0], grads[0])
					closeTo(t, wantGrads[1], grads[1])
				})
			}
		}
	}
}

// The gradient of a mean over many rows is finite in float16, although the gradient of their sum would overflow.
func TestLinearCrossEntropyDoesNotOverflow(t *testing.T) {
	const rows, h = 1 << 15, 16
	hidden, targets := mlxc.Ones(mlxc.Float16, rows, 1).MulScalar(h), mlxc.Zeros(mlxc.Int32, rows)
	_, grads, err := mlxc.ValueAndGrad(func(args arrays) arrays {
		return arrays{LinearCrossEntropy(hidden, args[0], targets, CrossEntropyConfig{})}
	})(arrays{mlxc.Zeros(mlxc.Float16, 4, 1)})
	require.NoError(t, err)
	require.Equal(t, []float32{-0.75 * h, 0.25 * h, 0.25 * h, 0.25 * h}, mlxtest.Floats(t, grads[0]))
}

var _ = testdevice.AlsoOnGPU(TestLinearCrossEntropyDoesNotOverflow)

// In float16 a row's gradient does not depend on the size of another row's cotangent, and does not vanish if its own
// cotangent is small.
func TestLinearCrossEntropyOfSmallAndLargeCotangents(t *testing.T) {
	const rows, width, classes = 6, 5, 600
	inf := float32(math.Inf(1))
	hidden := normal(1, mlxc.Float16, rows, width).MulScalar(64)
	weight := normal(2, mlxc.Float16, classes, width).MulScalar(1. / 64)
	targets := someTargets(rows, classes)
	inFloat32 := linearLossOf(targets, linearLossMLX(CrossEntropyConfig{Reduction: ReductionNone}))
	gradients := func(f mlxc.Func, dtype mlxc.DType, cotangents []float32) (dhidden, dweight []float32) {
		primals := arrays{hidden.AsType(dtype), weight.AsType(dtype)}
		_, grads, err := mlxc.VJP(f, primals, arrays{mlxc.FromSlice(cotangents)})
		require.NoError(t, err)
		return mlxtest.Floats(t, grads[0]), mlxtest.Floats(t, grads[1])
	}
	for _, slice := range []int{70, classes} {
		ours := linearLossOf(targets, sliced(CrossEntropyConfig{Reduction: ReductionNone}, slice, 1))
		for _, large := range []float32{1, 1e6, -3e38, inf, nan32} {
			cotangents := []float32{1, 1e-3, large, -0.3, 0, 2e-4}
			want, _ := gradients(inFloat32, mlxc.Float32, cotangents)
			got, _ := gradients(ours, mlxc.Float16, cotangents)
			for i := range got {
				if i/width == 2 && large != 1 {
					continue // beyond float16's range
				}
				allowed := 3e-3*math.Abs(float64(cotangents[i/width])) + 0x1p-24
				require.InDelta(t, want[i], got[i], allowed, "%d %v", i, large)
			}
		}
		// Small cotangents of different sizes.
		for _, c := range []float32{1e-4, 1e-2} {
			cotangents := []float32{c, c, -c, c / 2, 1e-30, c}
			_, want := gradients(inFloat32, mlxc.Float32, cotangents)
			_, got := gradients(ours, mlxc.Float16, cotangents)
			for i := range got {
				allowed := 1e-2*math.Abs(float64(want[i])) + 1e-2*float64(c)
				require.InDelta(t, want[i], got[i], allowed, "%d %v", i, c)
			}
		}
	}
}

// The gradients do not depend on the cotangent and the hidden row of an ignored target.
func TestLinearCrossEntropyIgnoresRows(t *testing.T) {
	useProductsInPlace(t)
	const rows, width, classes = 4, 3, 9
	inf := float32(math.Inf(1))
	weight, targets := normal(2, mlxc.Float16, classes, width), mlxc.FromSlice([]int32{3, -1, 8, 0})
	gradients := func(bad float32, plan classPlan, inPlace bool, reduction Reduction) (all [][]float32) {
		keep := mlxc.FromSlice([]float32{1, 0, 1, 1}).Reshape(rows, 1).Equal(mlxc.Scalar[float32](1))
		hidden := mlxc.Where(keep, normal(1, mlxc.Float32, rows, width), mlxc.Scalar(bad)).AsType(mlxc.Float16)
		f := linearLossOf(targets, func(hidden, weight, targets *mlxc.Array) *mlxc.Array {
			return linearCrossEntropy(hidden, weight, targets, CrossEntropyConfig{Reduction: reduction}, plan, inPlace)
		})
		dloss := mlxc.FromSlice([]float32{1, bad, 0.5, -1})
		if reduction != ReductionNone {
			dloss = mlxc.Scalar[float32](1.5)
		}
		_, grads, err := mlxc.VJP(f, arrays{hidden, weight}, arrays{dloss})
		require.NoError(t, err)
		return [][]float32{mlxtest.Floats(t, grads[0]), mlxtest.Floats(t, grads[1])}
	}
	for _, reduction := range []Reduction{ReductionMean, ReductionNone} {
		for plan, inPlace := range map[classPlan]bool{{4, 1}: false, {7, 1}: true, {classes, 1}: true} {
			want := gradients(0, plan, inPlace, reduction)
			for _, bad := range []float32{1e6, inf, nan32} {
				require.Equal(t, want, gradients(bad, plan, inPlace, reduction), "%v %v %v", plan, reduction, bad)
			}
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestLinearCrossEntropyIgnoresRows)

// The merge of slices computes the maximum of the logits, even if all are far below zero.
func TestLinearCrossEntropyOfLogitsFarBelowZero(t *testing.T) {
	const rows, classes = 3, 8
	hidden, weight := mlxc.Ones(mlxc.Float32, rows, 1), mlxc.Full(mlxc.Float32, mlxc.Scalar[float32](-200), classes, 1)
	loss := linearCrossEntropy(hidden, weight, someTargets(rows, classes), CrossEntropyConfig{}, classPlan{slice: 3}, false)
	require.InDelta(t, math.Log(classes), mlxtest.Floats(t, loss)[0], 1e-6)
}

var _ = testdevice.AlsoOnGPU(TestLinearCrossEntropyOfLogitsFarBelowZero)

func TestNewClassPlan(t *testing.T) {
	for _, c := range []struct {
		backend              mlxc.Backend
		rows, classes, width int
		dtype                mlxc.DType
		want                 classPlan
	}{
		{mlxc.BackendCUDA, 4096, 32768, 2048, mlxc.Float16, classPlan{32768, 1}},   // 256 MiB
		{mlxc.BackendCUDA, 4096, 32768, 2048, mlxc.Float32, classPlan{8192, 4}},    // twice as large as weight
		{mlxc.BackendCUDA, 4096, 128256, 4096, mlxc.Float16, classPlan{16032, 8}},  // as large as weight
		{mlxc.BackendCUDA, 16384, 128256, 2048, mlxc.Float16, classPlan{4008, 16}}, // half of 32 slices
		{mlxc.BackendCPU, 4097, 32768, 2048, mlxc.Float16, classPlan{6554, 4}},     // the fifth slice has less
		{mlxc.BackendCPU, 4096, 16384, 2048, mlxc.Float16, classPlan{16384, 1}},
		{mlxc.BackendCPU, 4096, 16385, 16, mlxc.Float16, classPlan{5462, 1}},      // half of three slices
		{mlxc.BackendCPU, 65536, 128256, 4096, mlxc.Float16, classPlan{4008, 16}}, // 64 MiB are 512 classes
		{mlxc.BackendCPU, 1 << 29, 4096, 1, mlxc.Float16, classPlan{4096, 1}},
		{mlxc.BackendMetal, 1, 1 << 30, 1, mlxc.Float32, classPlan{1 << 24, 64}},
		{mlxc.BackendCPU, 8192, 1, 8, mlxc.Float32, classPlan{1, 1}},
	} {
		require.Equal(t, c.want, newClassPlan(c.backend, c.rows, c.classes, c.width, c.dtype), "%+v", c)
	}
}

// The number of matrix products in the graph shows that gradients of captured operands are not computed, and how many
// slices keep their logits.
func TestLinearCrossEntropyOmitsUnneededProducts(t *testing.T) {
	const classes = 9
	args := arrays{normal(1, mlxc.Float32, 6, 4), normal(2, mlxc.Float32, classes, 4)}
	targets := someTargets(6, classes)
	for _, reduction := range []Reduction{ReductionMean, ReductionNone} {
		cfg := CrossEntropyConfig{Reduction: reduction}
		loss := func(f linearLossFunc, argnums []int) mlxc.Func {
			return func(traced arrays) arrays {
				all := slices.Clone(args)
				for i, n := range argnums {
					all[n] = traced[i]
				}
				return arrays{f(all[0], all[1], targets).Square().Sum()}
			}
		}
		for _, plan := range []classPlan{{3, 0}, {3, 2}, {3, 3}, {classes, 1}} {
			for _, argnums := range [][]int{{0, 1}, {0}, {1}} {
				t.Run(fmt.Sprint(reduction, plan, argnums), func(t *testing.T) {
					var of arrays
					for _, n := range argnums {
						of = append(of, args[n])
					}
					gradient := func(f linearLossFunc) mlxc.Func {
						return func(of arrays) arrays {
							_, grads, err := mlxc.ValueAndGrad(loss(f, argnums), []int{0, 1}[:len(argnums)]...)(of)
							require.NoError(t, err)
							return grads
						}
					}
					ours := gradient(sliced(cfg, plan.slice, plan.kept))
					want, got := gradient(linearLossMLX(cfg))(of), ours(of)
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
					all := classes / plan.slice
					again := all - plan.kept // slices whose logits are computed twice
					if all > 1 && !slices.Contains(argnums, 1) {
						again = all
					}
					require.Equal(t, all*(1+len(argnums))+again, products)
				})
			}
		}
	}
}

// The peak is below 8 of 32 slices, or 8 more than are kept. Two or three are expected to be in memory at a time.
func TestLinearCrossEntropyMemory(t *testing.T) {
	const rows, width, classes, slice = 4096, 4, 4096, 128
	const bytes = rows * slice * 4
	hidden, weight := normal(1, mlxc.Float32, rows, width), normal(2, mlxc.Float32, classes, width)
	targets := someTargets(rows, classes)
	require.NoError(t, mlxc.Eval(hidden, weight, targets))
	peak := func(run func() arrays) int {
		before := mlxc.ActiveMemory()
		mlxc.ResetPeakMemory()
		mlxc.WithScope(func() { require.NoError(t, mlxc.Eval(run()...)) })
		return mlxc.PeakMemory() - before
	}
	for _, kept := range []int{0, 16} {
		f := sliced(CrossEntropyConfig{}, slice, kept)
		for name, run := range map[string]func() arrays{
			"loss": func() arrays { return arrays{f(hidden, weight, targets)} },
			"loss and gradients": func() arrays {
				values, grads, err := mlxc.ValueAndGrad(linearLossOf(targets, f), 0, 1)(arrays{hidden, weight})
				require.NoError(t, err)
				return append(values, grads...)
			},
		} {
			t.Run(fmt.Sprint(name, kept), func(t *testing.T) {
				allowed := 8
				if name != "loss" {
					allowed += kept
				}
				p := peak(run)
				t.Logf("peak %.1f slices of %d", float64(p)/bytes, classes/slice)
				require.Less(t, p, allowed*bytes)
			})
		}
	}
}
