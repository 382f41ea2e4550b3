package ops

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// The softmax of the logits 0 and ln 3 is ¼ and ¾.
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
		{
			"mean",
			CrossEntropyConfig{},
			[]float64{(ln4 - ln3 + ln4) / 2},
			[]float64{1. / 8, -1. / 8, -3. / 8, 3. / 8, 0, 0},
		},
		{
			"sum",
			CrossEntropyConfig{Reduction: ReductionSum},
			[]float64{ln4 - ln3 + ln4},
			[]float64{1. / 4, -1. / 4, -3. / 4, 3. / 4, 0, 0},
		},
		{
			"none",
			CrossEntropyConfig{Reduction: ReductionNone},
			[]float64{ln4 - ln3, ln4, 0},
			[]float64{1. / 4, -1. / 4, -3. / 4, 3. / 4, 0, 0},
		},
		{
			"ignored",
			CrossEntropyConfig{IgnoreIndex: &zero},
			[]float64{ln4 - ln3},
			[]float64{1. / 4, -1. / 4, 0, 0, 0, 0},
		},
		{
			"smoothed",
			CrossEntropyConfig{Reduction: ReductionNone, LabelSmoothing: 0.5},
			[]float64{ln4 - ln3/2 - ln3/4, ln4 - ln3/4, 0},
			[]float64{0, 0, 1./4 - 3./4, 3./4 - 1./4, 0, 0},
		},
		{
			"z-loss",
			CrossEntropyConfig{Reduction: ReductionNone, ZLoss: 2},
			[]float64{ln4 - ln3 + 2*ln4*ln4, ln4 + 2*ln4*ln4, 0},
			[]float64{1./4 + ln4, 3./4 - 1 + 3*ln4, 1./4 - 1 + ln4, 3./4 + 3*ln4, 0, 0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dloss := mlxc.Ones(mlxc.Float32)
			if c.cfg.Reduction == ReductionNone {
				dloss = mlxc.Ones(mlxc.Float32, 3)
			}
			loss, grads, err := mlxc.VJP(lossOf(targets, c.cfg, CrossEntropy), arrays{x}, arrays{dloss})
			require.NoError(t, err)
			require.InDeltaSlice(t, c.loss, mlxtest.Floats(t, loss[0]), 1e-6)
			require.InDeltaSlice(t, c.grad, mlxtest.Floats(t, grads[0]), 1e-6)
		})
	}
	// With a soft cap of 1, the logit 0 has s = 0 and slope 1; a large logit has s = 1 and slope 0. The softmax is
	// 1/(1+e), e/(1+e).
	capped := CrossEntropyConfig{SoftCap: 1}
	loss, grads, err := mlxc.VJP(lossOf(mlxc.FromSlice([]int32{1}), capped, CrossEntropy),
		arrays{mlxc.FromSlice([]float32{0, 50}, 1, 2)}, arrays{mlxc.Ones(mlxc.Float32)})
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{math.Log(1+math.E) - 1}, mlxtest.Floats(t, loss[0]), 1e-6)
	require.InDeltaSlice(t, []float64{1 / (1 + math.E), 0}, mlxtest.Floats(t, grads[0]), 1e-6)
}

var _ = testdevice.AlsoOnGPU(TestCrossEntropyByHand)

// The mean divides the sum of the losses; it does not multiply by a reciprocal. The mean of equal losses is that loss
// up to the roundings of the sum and the quotient.
func TestCrossEntropyMean(t *testing.T) {
	const rows = 3
	for seed := range uint64(60) {
		x, weight := normal(seed, mlxc.Float32, 1, 17).BroadcastTo(rows, 17), normal(100, mlxc.Float32, 9, 17)
		targets := mlxc.Full(mlxc.Int32, mlxc.Scalar(int32(seed%9)), rows)
		for name, loss := range map[string]func(cfg CrossEntropyConfig) *mlxc.Array{
			"plain": func(cfg CrossEntropyConfig) *mlxc.Array { return CrossEntropy(x, targets, cfg) },
			"linear": func(cfg CrossEntropyConfig) *mlxc.Array {
				return LinearCrossEntropy(x, weight, targets, cfg)
			},
		} {
			of := func(r Reduction) float32 { return mlxtest.Floats(t, loss(CrossEntropyConfig{Reduction: r}))[0] }
			mean := of(ReductionMean)
			require.Equal(t, of(ReductionSum)/rows, mean, "%s, seed %d", name, seed)
			require.InEpsilon(t, of(ReductionNone), mean, 0x1p-23, "%s, seed %d", name, seed)
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestCrossEntropyMean)

// Logits may be huge, infinite and NaN. −∞ excludes a class.
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
		{
			"ignored row of NaN",
			[]float32{nan32, inf, 0, 0},
			[]int32{-1, 0},
			[]float32{0, math.Ln2},
			[]float32{0, 0, -0.5, 0.5},
		},
		{"huge", []float32{3e38, -3e38, -3e38, 3e38}, []int32{0, 0}, []float32{0, inf}, []float32{0, 0, -1, 1}},
		{
			"far from 0",
			[]float32{16384, 16385, -16385, -16384},
			[]int32{0, 1},
			[]float32{1.3132616, 0.31326166},
			[]float32{-0.7310586, 0.7310586, 0.26894143, -0.26894143},
		},
		{"excluded class", []float32{0, -inf, -inf, 5}, []int32{0, 1}, []float32{0, 0}, []float32{0, 0, 0, 0}},
		{"excluded target", []float32{0, -inf}, []int32{1}, []float32{inf}, []float32{1, -1}},
		{
			"NaN",
			[]float32{nan32, 0, 0, 0},
			[]int32{0, 0},
			[]float32{nan32, math.Ln2},
			[]float32{nan32, nan32, -0.5, 0.5},
		},
		{"all classes excluded", []float32{-inf, -inf}, []int32{0}, []float32{nan32}, []float32{nan32, nan32}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, targets := mlxc.FromSlice(c.logits, len(c.targets), 2), mlxc.FromSlice(c.targets)
			none := CrossEntropyConfig{Reduction: ReductionNone}
			dloss := mlxc.Ones(mlxc.Float32, len(c.targets))
			loss, grads, err := mlxc.VJP(lossOf(targets, none, CrossEntropy), arrays{x}, arrays{dloss})
			require.NoError(t, err)
			sameFloats(t, c.loss, mlxtest.Floats(t, loss[0]))
			sameFloats(t, c.grads, mlxtest.Floats(t, grads[0]))
		})
	}
	// Mean and gradient are 0 if all rows are ignored or there are none.
	for _, rows := range []int{0, 3} {
		x, targets := normal(1, mlxc.Float32, rows, 5), mlxc.Full(mlxc.Int32, mlxc.Scalar[int32](-1), rows)
		for _, cfg := range []CrossEntropyConfig{{}, {Reduction: ReductionSum}} {
			f := lossOf(targets, cfg, CrossEntropy)
			loss, grads, err := mlxc.VJP(f, arrays{x}, arrays{mlxc.Ones(mlxc.Float32)})
			require.NoError(t, err)
			require.Equal(t, []float32{0}, mlxtest.Floats(t, loss[0]))
			require.Equal(t, []int{rows, 5}, grads[0].Shape())
			require.Equal(t, make([]float32, rows*5), mlxtest.Floats(t, grads[0]))
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestCrossEntropyOfExtremeRows)

var nan32 = float32(math.NaN())

// sameFloats requires equal floats up to rounding. NaNs are equal.
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

// If the loss is scaled up, gradients do not vanish that would be below float16's range without the scale.
func TestCrossEntropyKeepsSmallGradients(t *testing.T) {
	const rows, width, scale = 512, 512, 1 << 16
	x, targets := mlxc.Zeros(mlxc.Float16, rows, width), mlxc.Zeros(mlxc.Int32, rows)
	_, grads, err := mlxc.ValueAndGrad(func(args arrays) arrays {
		return arrays{CrossEntropy(args[0], targets, CrossEntropyConfig{}).MulScalar(scale)}
	})(arrays{x})
	require.NoError(t, err)
	require.InDelta(t, scale/float64(rows*width), mlxtest.Floats(t, grads[0])[1], 1e-3)

	hidden, weight := mlxc.Ones(mlxc.Float16, rows, 1), mlxc.Zeros(mlxc.Float16, width, 1)
	_, grads, err = mlxc.ValueAndGrad(func(args arrays) arrays {
		return arrays{LinearCrossEntropy(hidden, args[0], targets, CrossEntropyConfig{})}
	})(arrays{weight})
	require.NoError(t, err)
	require.InDelta(t, 1./width, mlxtest.Floats(t, grads[0])[1], 1e-5)
}
