package ops

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func requireProductsInPlace(t *testing.T) {
	t.Helper()
	if !productsInPlace().Available() {
		skip.Missing(t, skip.CUDA, "only CUDA devices have products in place")
	}
}

// An inPlaceCase is a linear cross-entropy with products in place, and its gradients as MLX computes them.
type inPlaceCase struct {
	loss    mlxc.Func // of hidden and weight
	cfg     CrossEntropyConfig
	slice   int
	targets *mlxc.Array
	primals arrays
	dloss   arrays
	want    arrays // loss, dhidden, dweight
}

func newInPlaceCase(t *testing.T, dtype mlxc.DType, cfg CrossEntropyConfig, slice int) inPlaceCase {
	t.Helper()
	return newInPlaceCaseOf(t, dtype, cfg, slice, someTargets(70, 130))
}

// newInPlaceCaseOf returns a case for 70 targets out of 130 classes.
func newInPlaceCaseOf(t *testing.T, dtype mlxc.DType, cfg CrossEntropyConfig, slice int, targets *mlxc.Array) inPlaceCase {
	t.Helper()
	const rows, width, classes = 70, 40, 130
	// Both are transposed: products need contiguous operands.
	hidden, weight := normal(1, dtype, width, rows), normal(2, dtype, width, classes).MulScalar(0.2)
	dloss := mlxc.Scalar[float32](1.5)
	if cfg.Reduction == ReductionNone {
		dloss = normal(3, mlxc.Float32, rows)
	}
	c := inPlaceCase{
		loss: linearLossOf(targets, func(hidden, weight, targets *mlxc.Array) *mlxc.Array {
			return linearCrossEntropy(hidden, weight, targets, cfg, classPlan{slice, 1}, true)
		}),
		cfg:     cfg,
		slice:   slice,
		targets: targets,
		primals: arrays{hidden.Transpose(), weight.Transpose()},
		dloss:   arrays{dloss},
	}
	loss, grads, err := mlxc.VJP(linearLossOf(targets, linearLossMLX(cfg)), c.primals, c.dloss)
	require.NoError(t, err)
	c.want = slices.Concat(loss, grads)
	return c
}

// gradients returns the loss and the gradients. They are not evaluated.
func (c inPlaceCase) gradients(t *testing.T, loss mlxc.Func) arrays {
	t.Helper()
	results, grads, err := mlxc.VJP(loss, c.primals, c.dloss)
	require.NoError(t, err)
	return append(results, grads...)
}

// requireWant compares a loss, and gradients if there are any, with MLX's.
func (c inPlaceCase) requireWant(t *testing.T, got arrays) {
	t.Helper()
	for i, g := range got {
		want := c.want[i]
		if want.DType() == mlxc.Float32 && mlxc.TF32Enabled() {
			want, g = want.AsType(mlxc.BFloat16), g.AsType(mlxc.BFloat16)
		}
		closeTo(t, want, g)
	}
}

// Products that write to memory that exists give the same results for any number of slices, and also if the gradients
// are evaluated one after the other.
func TestLinearCrossEntropyInPlace(t *testing.T) {
	useProductsInPlace(t)
	zero := 0
	for _, dtype := range gradientDTypes {
		for _, cfg := range []CrossEntropyConfig{
			{SoftCap: 2, ZLoss: 0.01}, {Reduction: ReductionSum}, {Reduction: ReductionNone, LabelSmoothing: 0.1, IgnoreIndex: &zero},
		} {
			for _, slice := range []int{83, 100, 130} {
				t.Run(fmt.Sprint(dtype, cfg.Reduction, slice), func(t *testing.T) {
					c := newInPlaceCase(t, dtype, cfg, slice)
					for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
						got := c.gradients(t, c.loss)
						for _, i := range order {
							require.NoError(t, mlxc.Eval(got[i]))
						}
						c.requireWant(t, got)
					}
					c.requireWant(t, c.loss(c.primals)) // keeps no logits
				})
			}
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestLinearCrossEntropyInPlace)

// Unsigned targets are never ignored, so hidden is not copied.
func TestLinearCrossEntropyInPlaceOfUnsignedTargets(t *testing.T) {
	useProductsInPlace(t)
	targets := someTargets(70, 130).Maximum(mlxc.Scalar[int32](0)).AsType(mlxc.Uint32)
	for _, dtype := range gradientDTypes {
		for _, reduction := range []Reduction{ReductionMean, ReductionNone} {
			for _, slice := range []int{100, 130} {
				c := newInPlaceCaseOf(t, dtype, CrossEntropyConfig{Reduction: reduction}, slice, targets)
				c.requireWant(t, c.gradients(t, c.loss))
			}
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestLinearCrossEntropyInPlaceOfUnsignedTargets)

// A backward pass computes the logits if the forward pass kept none.
func TestLinearCrossEntropyInPlaceKeepsNone(t *testing.T) {
	useProductsInPlace(t)
	for _, reduction := range []Reduction{ReductionMean, ReductionNone} {
		for _, slice := range []int{100, 130} {
			c := newInPlaceCase(t, mlxc.BFloat16, CrossEntropyConfig{Reduction: reduction}, slice)
			loss := linearLoss{
				on: currentTarget(), cfg: c.cfg, plan: classPlan{c.slice, 1}, inPlace: true, needsGrad: [2]bool{true, true},
				hidden: c.primals[0], weight: c.primals[1], classes: c.cfg.classes(c.targets, c.primals[1].Dim(0)),
			}
			outputs := loss.forward(c.targets, false)
			require.Len(t, outputs, map[Reduction]int{ReductionMean: 3, ReductionNone: 2}[reduction])
			dhidden, dweight := loss.backward(c.dloss[0], outputs)
			c.requireWant(t, arrays{outputs[0], dhidden, dweight})
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestLinearCrossEntropyInPlaceKeepsNone)

// A backward pass overwrites the logits that the forward pass has kept. Other backward passes of the same forward pass
// nevertheless give the right gradients, in every order of evaluation.
func TestLinearCrossEntropyTwoBackwardPasses(t *testing.T) {
	useProductsInPlace(t)
	for _, dtype := range gradientDTypes {
		for _, slice := range []int{100, 130} {
			c := newInPlaceCase(t, dtype, CrossEntropyConfig{}, slice)
			// The gradient of `outer` goes through the same node as the gradient inside of it.
			var inner arrays
			outer := func(primals arrays) arrays {
				loss, grads, err := mlxc.VJP(c.loss, primals, c.dloss)
				require.NoError(t, err)
				constant := arrays{loss[0].StopGradient(), grads[0].StopGradient(), grads[1].StopGradient()}
				return append(loss, constant...)
			}
			for _, order := range [][]int{{0, 1}, {1, 0}, nil} {
				t.Run(fmt.Sprint(dtype, slice, order), func(t *testing.T) {
					zeros := zerosLike(c.want...)
					results, grads, err := mlxc.VJP(outer, c.primals, append(slices.Clone(c.dloss), zeros...))
					require.NoError(t, err)
					inner = results[1:]
					passes := []arrays{inner, append(arrays{results[0]}, grads...)}
					for _, i := range order {
						require.NoError(t, mlxc.Eval(passes[i]...))
					}
					require.NoError(t, mlxc.Eval(slices.Concat(passes...)...))
					for _, got := range passes {
						c.requireWant(t, got)
					}
				})
			}
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestLinearCrossEntropyTwoBackwardPasses)

// A second derivative is an error, although the kept logits are constants.
func TestLinearCrossEntropyInPlaceSecondDerivative(t *testing.T) {
	requireProductsInPlace(t)
	for _, slice := range []int{100, 130} {
		c := newInPlaceCase(t, mlxc.Float32, CrossEntropyConfig{}, slice)
		for i := range 2 {
			_, _, err := mlxc.VJP(func(primals arrays) arrays {
				_, grads, err := mlxc.VJP(c.loss, primals, c.dloss)
				if err != nil {
					return arrays{mlxc.InvalidArray(err)}
				}
				return grads[i : i+1]
			}, c.primals, zerosLike(c.want[1+i]))
			require.ErrorContains(t, err, "has no gradient")
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestLinearCrossEntropyInPlaceSecondDerivative)

// The calls of a compiled function, of a checkpoint and of a recipe share nodes' primitives, and no logits.
func TestLinearCrossEntropyInPlaceUnderTransforms(t *testing.T) {
	useProductsInPlace(t)
	for _, slice := range []int{100, 130} {
		c := newInPlaceCase(t, mlxc.Float16, CrossEntropyConfig{}, slice)
		direct := func(t *testing.T) arrays { return c.gradients(t, c.loss) }
		compiled := mlxc.Compile(func(primals arrays) arrays {
			loss, grads, err := mlxc.VJP(c.loss, primals, c.dloss)
			if err != nil {
				return arrays{mlxc.InvalidArray(err)}
			}
			return append(loss, grads...)
		})
		for name, gradients := range map[string]func(t *testing.T) arrays{
			"direct":     direct,
			"checkpoint": func(t *testing.T) arrays { return c.gradients(t, mlxc.Checkpoint(c.loss)) },
			"compiled": func(t *testing.T) arrays {
				results, err := compiled.Call(c.primals...)
				require.NoError(t, err)
				return results
			},
			"gradient of compiled": func(t *testing.T) arrays {
				f := mlxc.Compile(c.loss)
				return c.gradients(t, func(primals arrays) arrays {
					results, err := f.Call(primals...)
					require.NoError(t, err)
					return results
				})
			},
		} {
			t.Run(fmt.Sprint(name, slice), func(t *testing.T) {
				first, second := gradients(t), gradients(t)
				require.NoError(t, mlxc.Eval(second...))
				c.requireWant(t, first)
				c.requireWant(t, second)
				all := slices.Concat(gradients(t), gradients(t))
				require.NoError(t, mlxc.Eval(all...))
				c.requireWant(t, all[:3])
				c.requireWant(t, all[3:])
			})
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestLinearCrossEntropyInPlaceUnderTransforms)

// The peak is little more than the logits and the results.
func TestLinearCrossEntropyInPlaceMemory(t *testing.T) {
	requireProductsInPlace(t)
	const rows, width, classes = 8192, 128, 8192
	hidden, weight := normal(1, mlxc.Float16, rows, width), normal(2, mlxc.Float16, classes, width)
	targets := someTargets(rows, classes)
	require.NoError(t, mlxc.Eval(hidden, weight, targets))
	loss := linearLossOf(targets, func(hidden, weight, targets *mlxc.Array) *mlxc.Array {
		return LinearCrossEntropy(hidden, weight, targets, CrossEntropyConfig{})
	})
	for range 2 { // the graphs are recorded at the first call
		before := mlxc.ActiveMemory()
		mlxc.ResetPeakMemory()
		mlxc.WithScope(func() {
			values, grads, err := mlxc.ValueAndGrad(loss, 0, 1)(arrays{hidden, weight})
			require.NoError(t, err)
			require.NoError(t, mlxc.Eval(append(values, grads...)...))
		})
		logits := rows * classes * mlxc.Float16.Size()
		peak := mlxc.PeakMemory() - before
		t.Logf("peak %d bytes, logits %d bytes", peak, logits)
		require.Less(t, peak, logits*5/4)
	}
}

var _ = testdevice.AlsoOnGPU(TestLinearCrossEntropyInPlaceMemory)

// dlogits overwrite kept logits: no node of the forward pass refers to them when the backward pass takes their memory.
func TestLinearCrossEntropyReusesKeptLogits(t *testing.T) {
	useProductsInPlace(t)
	for _, reduction := range []Reduction{ReductionNone, ReductionMean} {
		for _, slice := range []int{130, 100} { // one or two slices
			c := newInPlaceCase(t, mlxc.BFloat16, CrossEntropyConfig{Reduction: reduction}, slice)
			for _, first := range []int{0, 0, 1} { // the graphs are recorded at the first call
				copies := productsInPlace().ReuseCopies()
				mlxc.WithScope(func() {
					all := c.gradients(t, c.loss)
					require.NoError(t, mlxc.Eval(all[first:]...)) // also without the loss
					c.requireWant(t, all)
				})
				require.Equal(t, copies, productsInPlace().ReuseCopies(), "%v, slices of %d", reduction, slice)
			}
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestLinearCrossEntropyReusesKeptLogits)

// The losses are differentiated without the nodes of MLX's custom_function, also if the divisor is a constant.
func TestLinearCrossEntropyInPlaceHidesItsOutputs(t *testing.T) {
	useProductsInPlace(t)
	targets := someTargets(70, 130)
	unsigned := targets.Maximum(mlxc.Scalar[int32](0)).AsType(mlxc.Uint32)
	for _, reduction := range []Reduction{ReductionNone, ReductionMean, ReductionSum} {
		for _, targets := range []*mlxc.Array{targets, unsigned} {
			c := newInPlaceCaseOf(t, mlxc.Float32, CrossEntropyConfig{Reduction: reduction}, 100, targets)
			c.requireWant(t, c.gradients(t, func(primals arrays) arrays {
				loss := c.loss(primals)
				var graph strings.Builder
				require.NoError(t, mlxc.PrintGraph(&graph, nil, loss...))
				require.Contains(t, graph.String(), "Forward")
				require.NotContains(t, graph.String(), "CustomTransforms")
				return loss
			}))
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestLinearCrossEntropyInPlaceHidesItsOutputs)

// One kernel computes the mean of losses and its divisor, with the threads of every backend.
func TestReducedLosses(t *testing.T) {
	cfg := CrossEntropyConfig{}
	for _, backend := range backends {
		for _, rows := range []int{1, 37, 5001} {
			targets := someTargets(rows, 9)
			ignored := mlxc.Full(mlxc.Int32, mlxc.Scalar[int32](-1), rows)
			for _, classes := range []*mlxc.Array{targets, ignored, targets.AsType(mlxc.Uint32)} {
				losses := normal(1, mlxc.Float32, rows)
				loss, divisor := cfg.reduced(target{backend: backend}, losses, classes)
				want := cfg.divisor(classes)
				require.Equal(t, mlxtest.Floats(t, want), mlxtest.Floats(t, divisor))
				closeTo(t, losses.Sum().Div(want), loss)
			}
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestReducedLosses)

// One kernel scales the rows of a matrix and replaces others by zeros, even if they hold NaN.
func TestScaleRows(t *testing.T) {
	inf := float32(math.Inf(1))
	factors, classes := mlxc.FromSlice([]float32{2, 0.5, inf, -1}), mlxc.FromSlice([]int32{0, -1, math.MinInt32, 1})
	elements := mlxc.FromSlice([]float32{1, 2, nan32, 4, inf, 6, 7, 8}).Reshape(4, 2)
	for _, dtype := range gradientDTypes {
		for _, c := range []struct {
			factors, classes *mlxc.Array
			want             []float32 // of the rows 0, 1 and 3
		}{
			{factors, nil, []float32{2, 4, nan32, 2, -7, -8}},
			{nil, classes, []float32{1, 2, 0, 0, 7, 8}},
			{factors, classes, []float32{2, 4, 0, 0, -7, -8}},
		} {
			got := productsInPlace().ScaleRows(elements.AsType(dtype), c.factors, c.classes)
			require.Equal(t, dtype, got.DType())
			values := mlxtest.Floats(t, got)
			require.Equal(t, fmt.Sprint(c.want), fmt.Sprint(slices.Delete(slices.Clone(values), 4, 6)))
			if c.classes != nil {
				require.Equal(t, []float32{0, 0}, values[4:6])
			}
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestScaleRows)

// All logits and the second slice's memory fit in half of the memory that MLX's gradient takes.
func TestNewInPlacePlan(t *testing.T) {
	for _, c := range []struct {
		rows, classes, width int
		dtype                mlxc.DType
		want                 int
	}{
		{4096, 32768, 2048, mlxc.Float32, 32768}, // 512 MiB
		{4096, 128256, 4096, mlxc.BFloat16, 128256 - 6144},
		{4096, 128256, 4096, mlxc.Float32, 128256 - 5120},
		{16384, 128256, 2048, mlxc.Float16, 128256 - 3072},
		{1 << 20, 4096, 8192, mlxc.Float32, 4065}, // hidden is larger than the logits
		{1 << 17, 1 << 18, 1 << 14, mlxc.Float16, 1<<18 - 17408},
		{8192, 1, 8, mlxc.Float32, 1},
		{1 << 29, 1, 8, mlxc.Float32, 1},
	} {
		plan := newInPlacePlan(c.rows, c.classes, c.width, c.dtype)
		require.Equal(t, classPlan{slice: c.want, kept: 1}, plan, "%+v", c)
		if second := c.classes - plan.slice; second > 0 { // its logits are in the first slice's rows of dweight
			require.LessOrEqual(t, c.rows*second, plan.slice*c.width, "%+v", c)
		}
	}
}

// The kernel that replaces logits by their gradient computes the same losses, states and gradients as the others, for
// all classes in one matrix or in two.
func TestCrossEntropyLossesInPlace(t *testing.T) {
	const rows, classes = 37, 2051
	targets, ones, on := someTargets(rows, classes), mlxc.Ones(mlxc.Float32, rows), currentTarget()
	// On Hopper GPUs, a threadgroup stages blocks of its next row. These are one to three blocks in few threadgroups.
	staging, tuning := target{backend: mlxc.BackendCUDA, warpgroups: true}, lossTuning[mlxc.BackendCUDA]
	t.Cleanup(func() { lossTuning[mlxc.BackendCUDA] = tuning })
	small := tuning
	small.fwdBwd.maxThreads, small.fwdBwd.coreThreads, small.fwdBwd.deviceThreads = 32, 64, 192
	lossTuning[mlxc.BackendCUDA] = small
	for _, dtype := range gradientDTypes {
		for _, cfg := range []CrossEntropyConfig{{}, {SoftCap: 2, ZLoss: 0.01, LabelSmoothing: 0.1}} {
			for _, end := range []int{classes, 2048, 1024, 600, 1} {
				t.Run(fmt.Sprint(dtype, cfg, end), func(t *testing.T) {
					logits := normal(1, dtype, rows, classes)
					want := crossEntropyLosses(on, logits, targets, nil, allClasses(logits), cfg)
					gradient := crossEntropyGradient(on, logits, want[1], ones, allClasses(logits), cfg)
					columns := func(a *mlxc.Array, begin, end int) *mlxc.Array {
						return a.Slice([]int{0, begin}, []int{rows, end}, nil).Contiguous()
					}
					var parts arrays
					for _, part := range [][2]int{{0, end}, {end, classes}} {
						if part[0] < part[1] {
							memory := columns(logits, part[0], part[1])
							parts = append(parts, memory.Add(zerosLike(memory)[0])) // memory of its own
						}
					}
					require.NoError(t, mlxc.Eval(append(parts, want[0], want[1], gradient)...))
					got := crossEntropyLossesInPlace(staging, parts, targets, cfg)
					require.NoError(t, mlxc.Eval(got...))
					closeTo(t, want[0], got[0])
					closeTo(t, want[1], got[1])
					closeTo(t, gradient, mlxc.Concatenate(-1, parts...))
				})
			}
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestCrossEntropyLossesInPlace)

// The shapes of recorded graphs need no check, but each array of targets does.
func TestRecordedLossesCheckTargets(t *testing.T) {
	useProductsInPlace(t)
	logits, weight := normal(1, mlxc.Float32, 2, 8), normal(2, mlxc.Float32, 8, 8)
	for _, last := range []int32{7, 7, 8} {
		targets := mlxc.FromSlice([]int32{0, last})
		losses := arrays{
			CrossEntropy(logits, targets, CrossEntropyConfig{}),
			LinearCrossEntropy(logits, weight, targets, CrossEntropyConfig{}),
		}
		for _, loss := range losses {
			if last < 8 {
				require.NoError(t, mlxc.Eval(loss))
			} else {
				require.ErrorContains(t, loss.Err(), "element 1 of targets is 8; it must be below 8")
			}
		}
	}
}
