package ops

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// lossOf is cross-entropy as a function of logits alone.
func lossOf(targets *mlxc.Array, cfg CrossEntropyConfig, f func(logits, targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array) mlxc.Func {
	return func(args arrays) arrays { return arrays{f(args[0], targets, cfg)} }
}

// someTargets are classes, with ignored ones among them: −1, −100, and 0, which
// IgnoreIndex may name.
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
	for _, reduction := range []Reduction{Mean, Sum, None} {
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

// Every entry of the geometry table computes the same loss and gradient, in one kernel
// and in two.
func TestCrossEntropyInEveryGeometry(t *testing.T) {
	cfg := CrossEntropyConfig{LabelSmoothing: 0.1, ZLoss: 0.01}
	for _, dtype := range gradientDTypes {
		for i, width := range []int{1, 31, 1000, 4099, 16411} {
			for _, rows := range []int{1, 37} {
				if !inSample(i, dtype) {
					continue
				}
				t.Run(fmt.Sprintf("%v/%dx%d", dtype, rows, width), func(t *testing.T) {
					x, targets, dloss := normal(1, dtype, rows, width), someTargets(rows, width), mlxc.Ones(mlxc.Float32)
					want, wantGrads, err := mlxc.VJP(lossOf(targets, cfg, crossEntropyOfMLX), arrays{x}, arrays{dloss})
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

// By hand: of two classes with logits 0 and ln 3 the softmax is ¼ and ¾.
func TestCrossEntropyByHand(t *testing.T) {
	ln3, ln4 := math.Log(3), math.Log(4)
	zero := 0
	x := mlxc.FromSlice([]float32{0, float32(ln3), 0, float32(ln3), 0, float32(ln3)}, 3, 2)
	targets := mlxc.FromSlice([]int32{1, 0, -1})
	for _, c := range []struct {
		name string
		cfg  CrossEntropyConfig
		loss []float64
		grad []float64
	}{
		{"mean", CrossEntropyConfig{}, []float64{(ln4 - ln3 + ln4) / 2}, []float64{1. / 8, -1. / 8, -3. / 8, 3. / 8, 0, 0}},
		{"sum", CrossEntropyConfig{Reduction: Sum}, []float64{ln4 - ln3 + ln4}, []float64{1. / 4, -1. / 4, -3. / 4, 3. / 4, 0, 0}},
		{"none", CrossEntropyConfig{Reduction: None}, []float64{ln4 - ln3, ln4, 0}, []float64{1. / 4, -1. / 4, -3. / 4, 3. / 4, 0, 0}},
		{"ignored", CrossEntropyConfig{IgnoreIndex: &zero}, []float64{ln4 - ln3}, []float64{1. / 4, -1. / 4, 0, 0, 0, 0}},
		{
			"smoothed",
			CrossEntropyConfig{Reduction: None, LabelSmoothing: 0.5},
			[]float64{ln4 - ln3/2 - ln3/4, ln4 - ln3/4, 0},
			[]float64{0, 0, 1./4 - 3./4, 3./4 - 1./4, 0, 0},
		},
		{
			"z-loss",
			CrossEntropyConfig{Reduction: None, ZLoss: 2},
			[]float64{ln4 - ln3 + 2*ln4*ln4, ln4 + 2*ln4*ln4, 0},
			[]float64{1./4 + ln4, 3./4 - 1 + 3*ln4, 1./4 - 1 + ln4, 3./4 + 3*ln4, 0, 0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dloss := mlxc.Ones(mlxc.Float32)
			if c.cfg.Reduction == None {
				dloss = mlxc.Ones(mlxc.Float32, 3)
			}
			loss, grads, err := mlxc.VJP(lossOf(targets, c.cfg, CrossEntropy), arrays{x}, arrays{dloss})
			require.NoError(t, err)
			require.InDeltaSlice(t, c.loss, floats(t, loss[0]), 1e-6)
			require.InDeltaSlice(t, c.grad, floats(t, grads[0]), 1e-6)
		})
	}
	// With a soft-cap of 1, a logit of 0 is 0 and has a slope of 1, a large one is 1 and
	// has none: p = 1/(1+e), e/(1+e).
	capped := CrossEntropyConfig{SoftCap: 1}
	loss, grads, err := mlxc.VJP(lossOf(mlxc.FromSlice([]int32{1}), capped, CrossEntropy),
		arrays{mlxc.FromSlice([]float32{0, 50}, 1, 2)}, arrays{mlxc.Ones(mlxc.Float32)})
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{math.Log(1+math.E) - 1}, floats(t, loss[0]), 1e-6)
	require.InDeltaSlice(t, []float64{1 / (1 + math.E), 0}, floats(t, grads[0]), 1e-6)
}

var _ = testdevice.AlsoOnGPU(TestCrossEntropyByHand)

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
				if cfg.Reduction == None {
					dloss = normal(2, mlxc.Float32, rows)
				}
				want, wantGrads, err := mlxc.VJP(lossOf(targets, cfg, crossEntropyOfMLX), arrays{x}, arrays{dloss})
				require.NoError(t, err)
				got, grads, err := mlxc.VJP(lossOf(targets, cfg, CrossEntropy), arrays{x}, arrays{dloss})
				require.NoError(t, err)
				closeTo(t, want[0], got[0])
				closeTo(t, wantGrads[0], grads[0])
			})
		}
	}
}

// The loss by itself, in larger expressions and under transforms. It makes the launches
// that it must: one if the gradient is the prepared one.
func TestCrossEntropyUnderTransforms(t *testing.T) {
	for _, dtype := range gradientDTypes {
		x, targets := normal(1, dtype, 4, 5, 65), someTargets(20, 65).Reshape(4, 5)
		for name, c := range map[string]struct {
			cfg      CrossEntropyConfig
			of       func(loss *mlxc.Array) *mlxc.Array
			launches uint64
		}{
			"mean":           {CrossEntropyConfig{}, func(l *mlxc.Array) *mlxc.Array { return l }, 1},
			"sum":            {CrossEntropyConfig{Reduction: Sum}, func(l *mlxc.Array) *mlxc.Array { return l }, 1},
			"none":           {CrossEntropyConfig{Reduction: None}, func(l *mlxc.Array) *mlxc.Array { return l.Square().Sum() }, 2},
			"scaled":         {CrossEntropyConfig{}, func(l *mlxc.Array) *mlxc.Array { return l.MulScalar(3) }, 2},
			"with a penalty": {CrossEntropyConfig{}, func(l *mlxc.Array) *mlxc.Array { return l.Add(mlxc.Scalar[float32](2)) }, 1},
			"squared":        {CrossEntropyConfig{}, func(l *mlxc.Array) *mlxc.Array { return l.Square() }, 2},
		} {
			t.Run(fmt.Sprint(dtype, " ", name), func(t *testing.T) {
				loss := func(f func(logits, targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array) mlxc.Func {
					return func(args arrays) arrays { return arrays{c.of(f(args[0], args[1], c.cfg))} }
				}
				want, wantGrads, err := mlxc.ValueAndGrad(loss(crossEntropyOfMLX))(arrays{x, targets})
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

// A second derivative is refused, with respect to the logits and to the cotangent, also
// where the forward pass has prepared the gradient.
func TestCrossEntropyRefusesSecondDerivatives(t *testing.T) {
	x, weight, targets := normal(1, mlxc.Float32, 5, 9), normal(2, mlxc.Float32, 7, 9), someTargets(5, 7)
	for name, f := range map[string]mlxc.Func{
		"CrossEntropy": func(args arrays) arrays { return arrays{CrossEntropy(args[0], targets, CrossEntropyConfig{})} },
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
			cfg := CrossEntropyConfig{Reduction: None}
			dloss := normal(2, mlxc.Float32, append([]int{2}, shape...)...).Sum(0)
			want, wantGrads, err := mlxc.VJP(lossOf(targets, cfg, crossEntropyOfMLX), arrays{x}, arrays{dloss})
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
			run := func() [][]float32 {
				var bits [][]float32
				for _, a := range crossEntropyForward(target{backend: d}, x, targets, CrossEntropyConfig{}, true) {
					bits = append(bits, floats(t, a))
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

// The mean of losses is their sum divided, not multiplied by a reciprocal. Of losses that
// are the same it is one of them, but for the roundings of the sum and the quotient.
func TestCrossEntropyMean(t *testing.T) {
	const rows = 3
	for seed := range uint64(60) {
		x, weight := normal(seed, mlxc.Float32, 1, 17).BroadcastTo(rows, 17), normal(100, mlxc.Float32, 9, 17)
		targets := mlxc.Full(mlxc.Int32, mlxc.Scalar(int32(seed%9)), rows)
		for name, loss := range map[string]func(cfg CrossEntropyConfig) *mlxc.Array{
			"plain":  func(cfg CrossEntropyConfig) *mlxc.Array { return CrossEntropy(x, targets, cfg) },
			"linear": func(cfg CrossEntropyConfig) *mlxc.Array { return LinearCrossEntropy(x, weight, targets, cfg) },
		} {
			of := func(r Reduction) float32 { return floats(t, loss(CrossEntropyConfig{Reduction: r}))[0] }
			mean := of(Mean)
			require.Equal(t, of(Sum)/rows, mean, "%s, seed %d", name, seed)
			require.InEpsilon(t, of(None), mean, 0x1p-23, "%s, seed %d", name, seed)
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestCrossEntropyMean)

// Rows that are out of the ordinary: all ignored, ignored with anything in them, huge,
// with classes that are left out.
func TestCrossEntropyOfExtremeRows(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name    string
		logits  []float32
		targets []int32
		loss    []float32
		grads   []float32
	}{
		{"all ignored", []float32{1, 2, 3, 4}, []int32{-1, -100}, []float32{0, 0}, []float32{0, 0, 0, 0}},
		{"ignored row of NaN", []float32{nan32, inf, 0, 0}, []int32{-1, 0}, []float32{0, math.Ln2}, []float32{0, 0, -0.5, 0.5}},
		{"huge", []float32{3e38, -3e38, -3e38, 3e38}, []int32{0, 0}, []float32{0, inf}, []float32{0, 0, -1, 1}},
		{"far from 0", []float32{16384, 16385, -16385, -16384}, []int32{0, 1}, []float32{1.3132616, 0.31326166}, []float32{-0.7310586, 0.7310586, 0.26894143, -0.26894143}},
		{"class left out", []float32{0, -inf, -inf, 5}, []int32{0, 1}, []float32{0, 0}, []float32{0, 0, 0, 0}},
		{"target left out", []float32{0, -inf}, []int32{1}, []float32{inf}, []float32{1, -1}},
		{"NaN", []float32{nan32, 0, 0, 0}, []int32{0, 0}, []float32{nan32, math.Ln2}, []float32{nan32, nan32, -0.5, 0.5}},
		{"all classes left out", []float32{-inf, -inf}, []int32{0}, []float32{nan32}, []float32{nan32, nan32}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, targets := mlxc.FromSlice(c.logits, len(c.targets), 2), mlxc.FromSlice(c.targets)
			none := CrossEntropyConfig{Reduction: None}
			loss, grads, err := mlxc.VJP(lossOf(targets, none, CrossEntropy), arrays{x}, arrays{mlxc.Ones(mlxc.Float32, len(c.targets))})
			require.NoError(t, err)
			sameFloats(t, c.loss, floats(t, loss[0]))
			sameFloats(t, c.grads, floats(t, grads[0]))
		})
	}
	// All rows ignored, or none there: a mean of 0 and a gradient of 0.
	for _, rows := range []int{0, 3} {
		x, targets := normal(1, mlxc.Float32, rows, 5), mlxc.Full(mlxc.Int32, mlxc.Scalar[int32](-1), rows)
		for _, cfg := range []CrossEntropyConfig{{}, {Reduction: Sum}} {
			loss, grads, err := mlxc.VJP(lossOf(targets, cfg, CrossEntropy), arrays{x}, arrays{mlxc.Ones(mlxc.Float32)})
			require.NoError(t, err)
			require.Equal(t, []float32{0}, floats(t, loss[0]))
			require.Equal(t, []int{rows, 5}, grads[0].Shape())
			require.Equal(t, make([]float32, rows*5), floats(t, grads[0]))
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestCrossEntropyOfExtremeRows)

var nan32 = float32(math.NaN())

// sameFloats takes a NaN for a NaN, and allows roundings.
func sameFloats(t *testing.T, want, got []float32) {
	t.Helper()
	require.Len(t, got, len(want))
	for i, w := range want {
		switch {
		case w != w:
			require.True(t, got[i] != got[i], "element %d of %v", i, got)
		case math.IsInf(float64(w), 0):
			require.Equal(t, w, got[i], "element %d of %v", i, got)
		default:
			require.InDelta(t, w, got[i], 1e-6, "element %d of %v", i, got)
		}
	}
}

// A target that is no class is an error where it is known at once, and NaN else; where it
// is ignored it is neither.
func TestCrossEntropyOfTargetsOutOfRange(t *testing.T) {
	five := 5
	x, weight := normal(1, mlxc.Float32, 3, 5), mlxc.Ones(mlxc.Float32, 5, 5)
	for name, targets := range map[string]*mlxc.Array{
		"int32":  mlxc.FromSlice([]int32{4, 5, 1}),
		"uint32": mlxc.FromSlice([]uint32{4, 5, 1}),
	} {
		for opName, op := range map[string]func(targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array{
			"CrossEntropy": func(targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array { return CrossEntropy(x, targets, cfg) },
			"LinearCrossEntropy": func(targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array {
				return LinearCrossEntropy(x, weight, targets, cfg)
			},
		} {
			t.Run(name+" "+opName, func(t *testing.T) {
				err := mlxc.Eval(op(targets, CrossEntropyConfig{}))
				require.ErrorContains(t, err, "ops."+opName)
				require.ErrorContains(t, err, "target 2 of 3 is 5, but there are 5 classes")
				lazy := targets.Add(mlxc.Zeros(targets.DType()))
				losses := floats(t, op(lazy, CrossEntropyConfig{Reduction: None}))
				require.False(t, math.IsNaN(float64(losses[0]+losses[2])))
				require.True(t, math.IsNaN(float64(losses[1])))
				losses = floats(t, op(targets, CrossEntropyConfig{Reduction: None, IgnoreIndex: &five}))
				require.Zero(t, losses[1])
			})
		}
	}
	// No bits of an unsigned target make it negative.
	targets := mlxc.FromSlice([]uint32{1 << 31, math.MaxUint32, 0})
	lazy := targets.Add(mlxc.Zeros(mlxc.Uint32))
	loss, grads, err := mlxc.VJP(lossOf(lazy, CrossEntropyConfig{Reduction: None}, CrossEntropy), arrays{x}, arrays{mlxc.Ones(mlxc.Float32, 3)})
	require.NoError(t, err)
	for i, v := range floats(t, loss[0]) {
		require.Equal(t, i < 2, math.IsNaN(float64(v)))
	}
	for i, v := range floats(t, grads[0]) {
		require.Equal(t, i < 10, math.IsNaN(float64(v)))
	}
}

// A loss that is scaled up for the sake of half precision keeps what would vanish in it.
func TestCrossEntropyKeepsSmallGradients(t *testing.T) {
	const rows, width, scale = 512, 512, 1 << 16
	x, targets := mlxc.Zeros(mlxc.Float16, rows, width), mlxc.Zeros(mlxc.Int32, rows)
	_, grads, err := mlxc.ValueAndGrad(func(args arrays) arrays {
		return arrays{CrossEntropy(args[0], targets, CrossEntropyConfig{}).MulScalar(scale)}
	})(arrays{x})
	require.NoError(t, err)
	require.InDelta(t, scale/float64(rows*width), floats(t, grads[0])[1], 1e-3)

	hidden, weight := mlxc.Ones(mlxc.Float16, rows, 1), mlxc.Zeros(mlxc.Float16, width, 1)
	_, grads, err = mlxc.ValueAndGrad(func(args arrays) arrays {
		return arrays{LinearCrossEntropy(hidden, args[0], targets, CrossEntropyConfig{})}
	})(arrays{weight})
	require.NoError(t, err)
	require.InDelta(t, 1./width, floats(t, grads[0])[1], 1e-5)
}

func TestCrossEntropyRefuses(t *testing.T) {
	x, targets := mlxc.Ones(mlxc.Float32, 2, 3), mlxc.Zeros(mlxc.Int32, 2)
	weight := mlxc.Ones(mlxc.Float32, 4, 3)
	freed := mlxc.Zeros(mlxc.Int32, 2)
	freed.Free()
	nan := nan32
	loss := func(cfg CrossEntropyConfig) *mlxc.Array { return CrossEntropy(x, targets, cfg) }
	linear := func(hidden, weight *mlxc.Array) *mlxc.Array {
		return LinearCrossEntropy(hidden, weight, targets, CrossEntropyConfig{})
	}
	for _, c := range []struct {
		name  string
		y     *mlxc.Array
		parts []string
	}{
		{"rank 0", CrossEntropy(mlxc.Scalar[float32](1), targets, CrossEntropyConfig{}), []string{"ops.CrossEntropy", "logits has no axis"}},
		{"no classes", CrossEntropy(mlxc.Zeros(mlxc.Float32, 2, 0), targets, CrossEntropyConfig{}), []string{"no classes"}},
		{"integers", CrossEntropy(x.AsType(mlxc.Int32), targets, CrossEntropyConfig{}), []string{"int32(2,3)", "AsType"}},
		{"float64", CrossEntropy(x.AsType(mlxc.Float64), targets, CrossEntropyConfig{}), []string{"float64", "AsType"}},
		{"shapes", CrossEntropy(x, mlxc.Zeros(mlxc.Int32, 3), CrossEntropyConfig{}), []string{"float32(2,3), int32(3)", "the shape [2]"}},
		{"targets' rank", CrossEntropy(x, mlxc.Zeros(mlxc.Int32, 2, 1), CrossEntropyConfig{}), []string{"the shape [2]"}},
		{"floating targets", CrossEntropy(x, mlxc.Zeros(mlxc.Float32, 2), CrossEntropyConfig{}), []string{"targets is float32", "AsType"}},
		{"wide targets", CrossEntropy(x, mlxc.Zeros(mlxc.Int64, 2), CrossEntropyConfig{}), []string{"targets is int64", "AsType"}},
		{"nil logits", CrossEntropy(nil, targets, CrossEntropyConfig{}), []string{"nil"}},
		{"freed targets", CrossEntropy(x, freed, CrossEntropyConfig{}), []string{"freed"}},
		{"reduction", loss(CrossEntropyConfig{Reduction: 3}), []string{"Reduction(3)", "Mean, Sum or None"}},
		{"negative smoothing", loss(CrossEntropyConfig{LabelSmoothing: -0.1}), []string{"LabelSmoothing is -0.1"}},
		{"smoothing of 1", loss(CrossEntropyConfig{LabelSmoothing: 1}), []string{"LabelSmoothing is 1"}},
		{"smoothing not a number", loss(CrossEntropyConfig{LabelSmoothing: nan}), []string{"LabelSmoothing is NaN"}},
		{"negative z-loss", loss(CrossEntropyConfig{ZLoss: -1}), []string{"ZLoss is -1"}},
		{"z-loss not a number", loss(CrossEntropyConfig{ZLoss: nan}), []string{"ZLoss is NaN"}},
		{"negative soft-cap", loss(CrossEntropyConfig{SoftCap: -1}), []string{"SoftCap is -1"}},
		{"infinite soft-cap", loss(CrossEntropyConfig{SoftCap: float32(math.Inf(1))}), []string{"SoftCap is +Inf"}},
		{"widths", linear(x, mlxc.Ones(mlxc.Float32, 4, 5)), []string{"ops.LinearCrossEntropy", "float32(2,3), float32(4,5), int32(2)", "[classes, 3]"}},
		{"weight's rank", linear(x, mlxc.Ones(mlxc.Float32, 3)), []string{"[classes, 3]"}},
		{"dtypes", linear(x, weight.AsType(mlxc.BFloat16)), []string{"hidden is float32 and weight bfloat16"}},
		{"empty weight", linear(x, mlxc.Ones(mlxc.Float32, 0, 3)), []string{"weight is empty"}},
		{"hidden's rank", linear(mlxc.Scalar[float32](1), weight), []string{"hidden has no axis"}},
		{"hidden's dtype", linear(x.AsType(mlxc.Int32), weight), []string{"hidden is int32"}},
		{"linear targets", LinearCrossEntropy(x, weight, mlxc.Zeros(mlxc.Int32, 3), CrossEntropyConfig{}), []string{"each row of hidden", "[2]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mlxc.Eval(c.y)
			for _, p := range c.parts {
				require.ErrorContains(t, err, p)
			}
			require.ErrorContains(t, err, "CrossEntropy")
		})
	}
	err := mlxc.Eval(CrossEntropy(x.Add(mlxc.Ones(mlxc.Float32, 7)), targets, CrossEntropyConfig{}))
	require.ErrorContains(t, err, "add")
	require.NotContains(t, err.Error(), "CrossEntropy")
}

// Without a C++ compiler, MLX's operations are used, with the same policy.
func TestCrossEntropyWithoutACompiler(t *testing.T) {
	x, targets := normal(1, mlxc.Float32, 6, 9), someTargets(6, 9).Add(mlxc.Zeros(mlxc.Int32))
	outside := func() *mlxc.Array { return mlxc.FromSlice([]int32{9, 1, 1, 1, 1, 1}).Add(mlxc.Zeros(mlxc.Int32)) }
	weight, cfg := normal(2, mlxc.Float32, 9, 9), CrossEntropyConfig{LabelSmoothing: 0.1, ZLoss: 0.1, SoftCap: 2}
	run := func() (all [][]float32) {
		for _, f := range []func(args arrays) *mlxc.Array{
			func(args arrays) *mlxc.Array { return CrossEntropy(args[0], targets, cfg) },
			func(args arrays) *mlxc.Array { return LinearCrossEntropy(args[0], weight, targets, cfg) },
			func(args arrays) *mlxc.Array {
				return CrossEntropy(args[0], outside(), CrossEntropyConfig{Reduction: None}).Sum()
			},
		} {
			values, grads, err := mlxc.ValueAndGrad(func(args arrays) arrays { return arrays{f(args)} })(arrays{x})
			require.NoError(t, err)
			all = append(all, floats(t, values[0]), floats(t, grads[0]))
		}
		return all
	}
	want := run()
	t.Setenv("CXX", "/nonexistent/compiler")
	launches := customkernels.LaunchCount()
	for i, got := range run() {
		sameFloats(t, want[i], got)
	}
	require.Equal(t, launches, customkernels.LaunchCount())
}

// A whole step is written as a function for a Mac, with the kernels that it launches.
func TestCrossEntropyIsExportedForMetal(t *testing.T) {
	targets := someTargets(6, 9)
	for name, c := range map[string]struct {
		loss    func(hidden, weight *mlxc.Array) *mlxc.Array
		kernels []string
	}{
		"prepared": {
			func(hidden, weight *mlxc.Array) *mlxc.Array {
				return CrossEntropy(hidden.MatMul(weight.Transpose()), targets, CrossEntropyConfig{})
			}, []string{"cross_entropy_fwd_bwd"},
		},
		"rows": {
			func(hidden, weight *mlxc.Array) *mlxc.Array {
				return CrossEntropy(hidden.MatMul(weight.Transpose()), targets, CrossEntropyConfig{Reduction: None}).Square().Sum()
			}, []string{"cross_entropy_forward", "cross_entropy_backward"},
		},
		"linear, in two slices": {
			func(hidden, weight *mlxc.Array) *mlxc.Array {
				return linearCrossEntropy(hidden, weight, targets, CrossEntropyConfig{}, 5)
			}, []string{"cross_entropy_forward", "cross_entropy_forward", "cross_entropy_merge", "cross_entropy_backward", "cross_entropy_backward"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			step := func(args arrays) (results arrays) {
				mlxc.WithPlaceholderGPU(func() {
					values, grads, err := mlxc.ValueAndGrad(func(args arrays) arrays { return arrays{c.loss(args[0], args[1])} }, 0, 1)(args)
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
