package ops

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

type lossFunc func(logits, targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array

// lossOf returns f as a function of logits alone.
func lossOf(targets *mlxc.Array, cfg CrossEntropyConfig, f lossFunc) mlxc.Func {
	return func(args arrays) arrays { return arrays{f(args[0], targets, cfg)} }
}

// someTargets returns classes and the ignored targets −1 and −100. It includes 0, for use as IgnoreIndex.
func someTargets(rows, classes int) *mlxc.Array {
	values := make([]int32, rows)
	for i := range values {
		values[i] = int32((i*7919 + 3) % classes)
		switch i % 5 {
		case 2:
			values[i] = -1
		case 4:
			values[i] = -100
		}
	}
	return mlxc.FromSlice(values)
}

func everyConfig() []CrossEntropyConfig {
	var list []CrossEntropyConfig
	zero := 0
	for _, reduction := range []Reduction{ReductionMean, ReductionSum, ReductionNone} {
		for bits := range 16 {
			cfg := CrossEntropyConfig{Reduction: reduction}
			if bits&1 != 0 {
				cfg.LabelSmoothing = 0.1
			}
			if bits&2 != 0 {
				cfg.ZLoss = 0.01
			}
			if bits&4 != 0 {
				cfg.SoftCap = 3
			}
			if bits&8 != 0 {
				cfg.IgnoreIndex = &zero
			}
			list = append(list, cfg)
		}
	}
	return list
}

// The geometry of each backend computes the loss and gradient of MLX's operations, in one kernel and in two.
func TestCrossEntropyInEveryGeometry(t *testing.T) {
	cfg := CrossEntropyConfig{LabelSmoothing: 0.1, ZLoss: 0.01}
	for _, dtype := range gradientDTypes {
		for i, width := range []int{1, 31, 1000, 4099, 16411} {
			for _, rows := range []int{1, 37} {
				if !inSample(i, dtype) {
					continue
				}
				t.Run(fmt.Sprintf("%v/%dx%d", dtype, rows, width), func(t *testing.T) {
					x, targets := normal(1, dtype, rows, width), someTargets(rows, width)
					dloss := mlxc.Ones(mlxc.Float32)
					want, wantGrads, err := mlxc.VJP(lossOf(targets, cfg, crossEntropyMLX), arrays{x}, arrays{dloss})
					require.NoError(t, err)
					for _, d := range backends {
						on := target{backend: d}
						for _, gradient := range []bool{false, true} {
							outputs := crossEntropyForward(on, x, targets, cfg, gradient)
							closeTo(t, want[0], outputs[0])
							closeTo(t, wantGrads[0], crossEntropyBackward(on, x, targets, dloss, outputs, cfg))
						}
					}
				})
			}
		}
	}
}

func TestCrossEntropyOptions(t *testing.T) {
	const rows, width = 10, 33
	for _, cfg := range everyConfig() {
		for _, signed := range []bool{true, false} {
			x, targets := normal(1, mlxc.Float32, rows, width).MulScalar(3), someTargets(rows, width)
			if !signed {
				targets = targets.Maximum(mlxc.Scalar[int32](0)).AsType(mlxc.Uint32)
			}
			t.Run(fmt.Sprintf("%+v/%v", cfg, targets.DType()), func(t *testing.T) {
				dloss := mlxc.Scalar[float32](0.7)
				if cfg.Reduction == ReductionNone {
					dloss = normal(2, mlxc.Float32, rows)
				}
				want, wantGrads, err := mlxc.VJP(lossOf(targets, cfg, crossEntropyMLX), arrays{x}, arrays{dloss})
				require.NoError(t, err)
				got, grads, err := mlxc.VJP(lossOf(targets, cfg, CrossEntropy), arrays{x}, arrays{dloss})
				require.NoError(t, err)
				closeTo(t, want[0], got[0])
				closeTo(t, wantGrads[0], grads[0])
			})
		}
	}
}

// The loss agrees with MLX's by itself, in larger expressions and under transforms. The losses and the
// gradient take one launch if the backward pass returns the gradient that the forward pass has prepared, else 2. The
// reduction takes another launch.
func TestCrossEntropyUnderTransforms(t *testing.T) {
	none, sum := CrossEntropyConfig{Reduction: ReductionNone}, CrossEntropyConfig{Reduction: ReductionSum}
	two := mlxc.Scalar[float32](2)
	for _, dtype := range gradientDTypes {
		x, targets := normal(1, dtype, 4, 5, 65), someTargets(20, 65).Reshape(4, 5)
		for name, c := range map[string]struct {
			cfg      CrossEntropyConfig
			of       func(loss *mlxc.Array) *mlxc.Array
			launches uint64
		}{
			"mean":           {CrossEntropyConfig{}, func(l *mlxc.Array) *mlxc.Array { return l }, 2},
			"sum":            {sum, func(l *mlxc.Array) *mlxc.Array { return l }, 2},
			"none":           {none, func(l *mlxc.Array) *mlxc.Array { return l.Square().Sum() }, 2},
			"scaled":         {CrossEntropyConfig{}, func(l *mlxc.Array) *mlxc.Array { return l.MulScalar(3) }, 3},
			"with a penalty": {CrossEntropyConfig{}, func(l *mlxc.Array) *mlxc.Array { return l.Add(two) }, 2},
			"squared":        {CrossEntropyConfig{}, func(l *mlxc.Array) *mlxc.Array { return l.Square() }, 3},
		} {
			t.Run(fmt.Sprint(dtype, " ", name), func(t *testing.T) {
				loss := func(f lossFunc) mlxc.Func {
					return func(args arrays) arrays { return arrays{c.of(f(args[0], args[1], c.cfg))} }
				}
				want, wantGrads, err := mlxc.ValueAndGrad(loss(crossEntropyMLX))(arrays{x, targets})
				require.NoError(t, err)
				same := func(values, grads arrays) {
					t.Helper()
					closeTo(t, want[0], values[0])
					closeTo(t, wantGrads[0], grads[0])
				}
				closeTo(t, want[0], loss(CrossEntropy)(arrays{x, targets})[0])

				before := customkernels.LaunchCount()
				values, grads, err := mlxc.ValueAndGrad(loss(CrossEntropy))(arrays{x, targets})
				require.NoError(t, err)
				require.Equal(t, c.launches, customkernels.LaunchCount()-before)
				same(values, grads)

				values, grads, err = mlxc.ValueAndGrad(mlxc.Checkpoint(loss(CrossEntropy)))(arrays{x, targets})
				require.NoError(t, err)
				same(values, grads)

				compiled := mlxc.Compile(func(args arrays) arrays {
					values, grads, err := mlxc.ValueAndGrad(loss(CrossEntropy))(args)
					if err != nil {
						return arrays{mlxc.InvalidArray(err)}
					}
					return append(values, grads...)
				})
				defer compiled.Close()
				for range 2 {
					out, err := compiled.Call(x, targets)
					require.NoError(t, err)
					same(out[:1], out[1:])
				}
			})
		}
	}
}

// A second derivative with respect to the logits or the cotangent is an error, even if the forward pass has prepared
// the gradient.
func TestCrossEntropyHasNoSecondDerivative(t *testing.T) {
	x, weight, targets := normal(1, mlxc.Float32, 5, 9), normal(2, mlxc.Float32, 7, 9), someTargets(5, 7)
	for name, f := range map[string]mlxc.Func{
		"CrossEntropy": func(args arrays) arrays {
			return arrays{CrossEntropy(args[0], targets, CrossEntropyConfig{})}
		},
		"LinearCrossEntropy": func(args arrays) arrays {
			return arrays{LinearCrossEntropy(args[0], weight, targets, CrossEntropyConfig{})}
		},
	} {
		t.Run(name, func(t *testing.T) {
			gradient := func(args arrays) arrays {
				_, grads, err := mlxc.VJP(f, args[:1], args[1:])
				if err != nil {
					return arrays{mlxc.InvalidArray(err)}
				}
				return grads
			}
			one := mlxc.Ones(mlxc.Float32)
			byX := func(args arrays) arrays { return gradient(append(args, one)) }
			_, _, err := mlxc.VJP(byX, arrays{x}, arrays{x})
			require.ErrorContains(t, err, "cross_entropy")
			require.ErrorContains(t, err, "no gradient")
			byCotangent := func(args arrays) arrays { return gradient(arrays{x, args[0]}) }
			_, _, err = mlxc.VJP(byCotangent, arrays{one}, arrays{x})
			require.ErrorContains(t, err, "no gradient")
		})
	}
}

func TestCrossEntropyOfTransposedAndStridedInputs(t *testing.T) {
	base := normal(1, mlxc.Float32, 66, 20)
	for name, x := range map[string]*mlxc.Array{
		"transposed": base.Transpose(),
		"strided":    base.Slice([]int{1, 0}, []int{66, 20}, []int{2, 3}),
		"broadcast":  normal(1, mlxc.Float32, 1, 40).BroadcastTo(7, 40),
		"one row":    normal(1, mlxc.Float32, 40),
		"many axes":  normal(1, mlxc.Float32, 3, 1, 2, 5),
	} {
		t.Run(name, func(t *testing.T) {
			shape := x.Shape()
			shape = shape[:len(shape)-1]
			rows := x.Size() / x.Dim(-1)
			targets := someTargets(2*rows, x.Dim(-1)).Slice([]int{0}, []int{2 * rows}, []int{2}).Reshape(shape...)
			cfg := CrossEntropyConfig{Reduction: ReductionNone}
			dloss := normal(2, mlxc.Float32, append([]int{2}, shape...)...).Sum(0)
			want, wantGrads, err := mlxc.VJP(lossOf(targets, cfg, crossEntropyMLX), arrays{x}, arrays{dloss})
			require.NoError(t, err)
			got, grads, err := mlxc.VJP(lossOf(targets, cfg, CrossEntropy), arrays{x}, arrays{dloss})
			require.NoError(t, err)
			closeTo(t, want[0], got[0])
			closeTo(t, wantGrads[0], grads[0])
		})
	}
}

func TestCrossEntropyGivesTheSameBits(t *testing.T) {
	for _, dtype := range gradientDTypes {
		for _, d := range backends {
			x, targets := normal(1, dtype, 70, 1025), someTargets(70, 1025)
			run := func() [][]uint32 {
				var bits [][]uint32
				for _, a := range crossEntropyForward(target{backend: d}, x, targets, CrossEntropyConfig{}, true) {
					bits = append(bits, bitsOf(t, a))
				}
				return bits
			}
			first := run()
			for range 19 {
				require.Equal(t, first, run())
			}
		}
	}
}

// Without a C++ compiler, MLX's operations are used, with the same treatment of ignored and invalid targets.
func TestCrossEntropyWithoutACompiler(t *testing.T) {
	x, targets := normal(1, mlxc.Float32, 6, 9), someTargets(6, 9).Add(mlxc.Zeros(mlxc.Int32))
	invalid := func() *mlxc.Array { return mlxc.FromSlice([]int32{9, 1, 1, 1, 1, 1}).Add(mlxc.Zeros(mlxc.Int32)) }
	weight, cfg := normal(2, mlxc.Float32, 9, 9), CrossEntropyConfig{LabelSmoothing: 0.1, ZLoss: 0.1, SoftCap: 2}
	run := func() (all [][]float32) {
		for _, f := range []func(args arrays) *mlxc.Array{
			func(args arrays) *mlxc.Array { return CrossEntropy(args[0], targets, cfg) },
			func(args arrays) *mlxc.Array { return LinearCrossEntropy(args[0], weight, targets, cfg) },
			func(args arrays) *mlxc.Array {
				return CrossEntropy(args[0], invalid(), CrossEntropyConfig{Reduction: ReductionNone}).Sum()
			},
		} {
			values, grads, err := mlxc.ValueAndGrad(func(args arrays) arrays { return arrays{f(args)} })(arrays{x})
			require.NoError(t, err)
			all = append(all, mlxtest.Floats(t, values[0]), mlxtest.Floats(t, grads[0]))
		}
		return all
	}
	want := run()
	withoutCompiler(t)
	launches := customkernels.LaunchCount()
	for i, got := range run() {
		sameFloats(t, want[i], got)
	}
	require.Equal(t, launches, customkernels.LaunchCount())
}

// Value and gradient can be exported for Metal, with the expected kernels.
func TestCrossEntropyIsExportedForMetal(t *testing.T) {
	targets := someTargets(6, 9)
	for name, c := range map[string]struct {
		loss    func(hidden, weight *mlxc.Array) *mlxc.Array
		kernels []string
	}{
		"prepared": {
			func(hidden, weight *mlxc.Array) *mlxc.Array {
				return CrossEntropy(hidden.MatMul(weight.Transpose()), targets, CrossEntropyConfig{})
			}, []string{"cross_entropy_fwd_bwd", "cross_entropy_reduce"},
		},
		"rows": {
			func(hidden, weight *mlxc.Array) *mlxc.Array {
				logits := hidden.MatMul(weight.Transpose())
				return CrossEntropy(logits, targets, CrossEntropyConfig{Reduction: ReductionNone}).Square().Sum()
			}, []string{"cross_entropy_forward", "cross_entropy_backward"},
		},
		"linear, in two slices": {
			func(hidden, weight *mlxc.Array) *mlxc.Array {
				return linearCrossEntropy(hidden, weight, targets, CrossEntropyConfig{}, classPlan{slice: 5}, false)
			}, []string{
				"cross_entropy_forward", "cross_entropy_forward", "cross_entropy_merge",
				"cross_entropy_backward", "cross_entropy_backward",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			loss := func(args arrays) arrays { return arrays{c.loss(args[0], args[1])} }
			step := func(args arrays) (results arrays) {
				mlxc.WithPlaceholderGPU(func() {
					values, grads, err := mlxc.ValueAndGrad(loss, 0, 1)(args)
					if err != nil {
						results = arrays{mlxc.InvalidArray(err)}
						return
					}
					results = slices.Concat(values, grads)
				})
				return results
			}
			hidden, weight := normal(1, mlxc.Float32, 6, 4), normal(2, mlxc.Float32, 9, 4)
			nodes, err := mlxc.Trace(step, arrays{hidden, weight})
			require.NoError(t, err)
			var kernels []string
			for _, n := range nodes {
				if n.Primitive == "CustomKernel" {
					require.Contains(t, n.Strings[1], "[[kernel]] void "+n.Strings[0])
					kernels = append(kernels, n.Strings[0])
				}
			}
			require.Len(t, kernels, len(c.kernels))
			for i, k := range c.kernels {
				require.Contains(t, kernels[i], k)
			}
			require.NoError(t, mlxc.Export(filepath.Join(t.TempDir(), "step.mlxfn"), step, hidden, weight))
		})
	}
}
