package ops

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A gatedDeltaCase is a configuration with its operands: q, k, v, logDecay, beta, and the initial state if there is one.
type gatedDeltaCase struct {
	name string
	cfg  GatedDeltaRuleConfig
	args arrays
}

type gatedDeltaFunc func(q, k, v, logDecay, beta *mlxc.Array, c GatedDeltaRuleConfig) (out, state *mlxc.Array)

// function returns f, with the case's options, as a function of args.
func (c gatedDeltaCase) function(f gatedDeltaFunc) mlxc.Func {
	return func(args arrays) arrays {
		cfg := c.cfg.withScale(args[0].Dim(3))
		if len(args) > 5 {
			cfg.InitialState = args[5]
		}
		out, state := f(args[0], args[1], args[2], args[3], args[4], cfg)
		return arrays{out, state}
	}
}

// gatedDeltaOperands returns operands: q, k, v, logDecay and beta.
func gatedDeltaOperands(dtype mlxc.DType, batch, keyHeads, heads, length, width, valueWidth int) arrays {
	return arrays{
		normal(1, dtype, batch, keyHeads, length, width),
		normal(2, dtype, batch, keyHeads, length, width).MulScalar(1 / math.Sqrt(float64(width))),
		normal(3, dtype, batch, heads, length, valueWidth),
		normal(4, dtype, batch, heads, length).Square().Neg(),
		normal(5, dtype, batch, heads, length).Sigmoid(),
	}
}

// someGatedDelta returns a case for each option and one for several options together.
func someGatedDelta(dtype mlxc.DType) []gatedDeltaCase {
	operands := func(batch int) arrays { return gatedDeltaOperands(dtype, batch, 1, 2, 7, 16, 32) }
	starts := mlxc.FromSlice([]int32{0, 2, 2, 7})
	return []gatedDeltaCase{
		{name: "plain", args: operands(2)},
		{name: "scale, state", cfg: GatedDeltaRuleConfig{Scale: 0.7}, args: append(operands(2), normal(6, dtype, 2, 2, 16, 32))},
		{name: "sequences", cfg: GatedDeltaRuleConfig{Starts: starts}, args: operands(1)},
		{
			name: "sequences, state", cfg: GatedDeltaRuleConfig{Starts: starts},
			args: append(operands(1), normal(6, mlxc.Float32, 3, 2, 16, 32)),
		},
	}
}

// The value and the gradients equal the composition's under every transform. Each output is tested on its own, which
// leaves the other without a cotangent.
func TestGatedDeltaRuleUnderTransforms(t *testing.T) {
	for _, dtype := range gradientDTypes {
		for n, c := range someGatedDelta(dtype) {
			if !inSample(n, dtype) {
				continue
			}
			ours, theirs := c.function(GatedDeltaRule), c.function(gatedDeltaMLX)
			for i, output := range []string{"out", "state"} {
				t.Run(fmt.Sprintf("%v/%s/%s", dtype, c.name, output), func(t *testing.T) {
					like := theirs(c.args)[i]
					testUnderTransforms(t, only(i, ours), only(i, theirs), c.args, normal(7, like.DType(), like.Shape()...))
				})
			}
		}
	}
}

// The geometry of every backend computes the composition's values and gradients, with packed sequences that end within
// a chunk and at its end.
func TestGatedDeltaRuleOfEveryGeometry(t *testing.T) {
	c := gatedDeltaLaunch{shape: [6]int{1, 1, 2, 133, 48, 16}, starts: []int32{0, 5, 5, 69, 133, 133}}
	in := c.inputs(mlxc.Float32)
	args := in.list()[:6]
	want := gatedDeltaCase{cfg: GatedDeltaRuleConfig{Scale: 0.5, Starts: in.starts}}.function(gatedDeltaMLX)
	values, grads, err := mlxc.VJP(want, args, arrays{normal(7, mlxc.Float32, 1, 2, 133, 16), normal(8, mlxc.Float32, 5, 2, 48, 16)})
	require.NoError(t, err)
	for _, b := range backends {
		t.Run(string(b), func(t *testing.T) {
			on := target{backend: b}
			got := gatedDeltaForward(on, in, 0.5)
			for i := range values {
				closeTo(t, values[i], got[i])
			}
			got = gatedDeltaBackward(on, in, normal(7, mlxc.Float32, 1, 2, 133, 16), normal(8, mlxc.Float32, 5, 2, 48, 16), 0.5)
			for i := range grads {
				closeTo(t, grads[i], got[i])
			}
		})
	}
}

// MLX's function, whose arrays have other layouts, has the same values and gradients.
func TestGatedDeltaRuleOfMLX(t *testing.T) {
	args := append(gatedDeltaOperands(mlxc.Float32, 2, 1, 2, 70, 32, 48), normal(6, mlxc.Float32, 2, 2, 32, 48))
	cotangents := arrays{normal(7, mlxc.Float32, 2, 2, 70, 48), normal(8, mlxc.Float32, 2, 2, 32, 48)}
	byStep := func(x *mlxc.Array) *mlxc.Array { return x.SwapAxes(1, 2) }
	theirs := func(a arrays) arrays {
		out, state := mlxc.GatedDeltaUpdate(byStep(a[0]), byStep(a[1]), byStep(a[2]), byStep(a[3].Exp()), byStep(a[4]),
			mlxc.GatedDeltaConfig{State: a[5].SwapAxes(2, 3)})
		return arrays{byStep(out), state.SwapAxes(2, 3)}
	}
	if !mlxtest.Needs(t, "0.32.4", theirs(args)...) {
		return
	}
	wantValues, want, err := mlxc.VJP(theirs, args, cotangents)
	require.NoError(t, err)
	values, grads, err := mlxc.VJP(gatedDeltaCase{cfg: GatedDeltaRuleConfig{Scale: 1}}.function(GatedDeltaRule), args, cotangents)
	require.NoError(t, err)
	for i, x := range append(values, grads...) {
		closeTo(t, append(wantValues, want...)[i], x)
	}
}

// Steps one by one compute the values of the whole.
func TestGatedDeltaStep(t *testing.T) {
	for _, dtype := range gradientDTypes {
		const length = 3
		args := gatedDeltaOperands(dtype, 2, 1, 2, length, 16, 48)
		initial := normal(6, mlxc.Float32, 2, 2, 16, 48)
		want, wantState := gatedDeltaMLX(args[0], args[1], args[2], args[3], args[4],
			GatedDeltaRuleConfig{Scale: 0.25, InitialState: initial})
		state := initial
		var outs arrays
		for i := range length {
			at := make(arrays, len(args))
			for j, x := range args {
				from, to := make([]int, x.NDim()), x.Shape()
				from[2], to[2] = i, i+1
				at[j] = x.Slice(from, to, nil).Squeeze(2)
			}
			var out *mlxc.Array
			out, state = GatedDeltaStep(at[0], at[1], at[2], at[3], at[4], state, 0) // 16^−½ is ¼
			outs = append(outs, out)
		}
		closeTo(t, want, mlxc.Stack(2, outs...))
		closeTo(t, wantState, state)
	}
}

var _ = testdevice.AlsoOnGPU(TestGatedDeltaStep)

// A step has the gradient of the whole rule.
func TestGatedDeltaStepGradient(t *testing.T) {
	step := func(args arrays) arrays {
		out, state := GatedDeltaStep(args[0], args[1], args[2], args[3], args[4], args[5], 0)
		return arrays{out, state}
	}
	args := arrays{
		normal(1, mlxc.Float32, 1, 1, 16), normal(2, mlxc.Float32, 1, 1, 16), normal(3, mlxc.Float32, 1, 2, 16),
		normal(4, mlxc.Float32, 1, 2).Square().Neg(), normal(5, mlxc.Float32, 1, 2), normal(6, mlxc.Float32, 1, 2, 16, 16),
	}
	cotangents := arrays{normal(7, mlxc.Float32, 1, 2, 16), normal(8, mlxc.Float32, 1, 2, 16, 16)}
	_, got, err := mlxc.VJP(step, args, cotangents)
	require.NoError(t, err)
	whole := func(args arrays) arrays {
		out, state := gatedDeltaMLX(args[0].ExpandDims(2), args[1].ExpandDims(2), args[2].ExpandDims(2),
			args[3].ExpandDims(2), args[4].ExpandDims(2), GatedDeltaRuleConfig{Scale: 0.25, InitialState: args[5]})
		return arrays{out.Squeeze(2), state}
	}
	_, want, err := mlxc.VJP(whole, args, cotangents)
	require.NoError(t, err)
	for i := range want {
		closeTo(t, want[i], got[i])
	}
}

// A decay of 0 forgets the state and passes no gradient, also where all decays are 0.
func TestGatedDeltaRuleForgets(t *testing.T) {
	args := append(gatedDeltaOperands(mlxc.Float32, 1, 1, 1, 40, 16, 16), normal(6, mlxc.Float32, 1, 1, 16, 16))
	args[3] = mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(math.Inf(-1))), 1, 1, 40)
	f := gatedDeltaCase{}.function(GatedDeltaRule)
	values, grads, err := mlxc.VJP(f, args, arrays{normal(7, mlxc.Float32, 1, 1, 40, 16), normal(8, mlxc.Float32, 1, 1, 16, 16)})
	require.NoError(t, err)
	for _, x := range append(values, grads...) {
		for _, v := range mlxtest.Floats(t, x) {
			require.False(t, math.IsNaN(float64(v)) || math.IsInf(float64(v), 0))
		}
	}
	zeros := func(x *mlxc.Array) {
		require.NotContains(t, mlxtest.Floats(t, x.Equal(mlxc.Scalar[float32](0)).AsType(mlxc.Float32)), float32(0))
	}
	zeros(grads[3])
	zeros(grads[5])
	// Each step writes into an empty state: out = scale·β·(k·q)·v.
	product := args[0].Mul(args[1]).Sum(-1).Mul(args[4]).MulScalar(0.25).ExpandDims(-1)
	closeTo(t, product.Mul(args[2]), values[0])
}

// Sequences without steps keep their states, and so does a whole without steps.
func TestGatedDeltaRuleWithoutSteps(t *testing.T) {
	args := gatedDeltaOperands(mlxc.Float32, 2, 1, 2, 0, 16, 16)
	initial := normal(6, mlxc.Float32, 2, 2, 16, 16)
	out, state := GatedDeltaRule(args[0], args[1], args[2], args[3], args[4], GatedDeltaRuleConfig{InitialState: initial})
	require.NoError(t, mlxc.Eval(out))
	require.Equal(t, []int{2, 2, 0, 16}, out.Shape())
	require.Equal(t, mlxtest.Floats(t, initial), mlxtest.Floats(t, state))

	args = gatedDeltaOperands(mlxc.Float32, 1, 1, 2, 3, 16, 16)
	_, state = GatedDeltaRule(args[0], args[1], args[2], args[3], args[4],
		GatedDeltaRuleConfig{InitialState: initial, Starts: mlxc.FromSlice([]int32{0, 0, 3})})
	require.Equal(t, mlxtest.Floats(t, initial)[:512], mlxtest.Floats(t, state)[:512])
}

// Repeated gradients have the same bits.
func TestGatedDeltaRuleGradientsHaveTheSameBits(t *testing.T) {
	args := append(gatedDeltaOperands(mlxc.Float32, 1, 1, 4, 100, 32, 32), normal(6, mlxc.Float32, 1, 4, 32, 32))
	require.NoError(t, mlxc.Eval(args...))
	cotangents := arrays{normal(7, mlxc.Float32, 1, 4, 100, 32), normal(8, mlxc.Float32, 1, 4, 32, 32)}
	requireSameBits(t, 4, gatedDeltaCase{}.function(GatedDeltaRule), args, cotangents)
}

var _ = testdevice.AlsoOnGPU(TestGatedDeltaRuleGradientsHaveTheSameBits)

func TestGatedDeltaRuleArgumentErrors(t *testing.T) {
	zeros := func(shape ...int) *mlxc.Array { return mlxc.Zeros(mlxc.Float32, shape...) }
	q, v, rows := zeros(1, 2, 5, 16), zeros(1, 4, 5, 32), zeros(1, 4, 5)
	starts := func(values ...int32) GatedDeltaRuleConfig {
		return GatedDeltaRuleConfig{Starts: mlxc.FromSlice(values)}
	}
	for _, c := range []struct {
		want          string
		q, k, v, d, b *mlxc.Array
		cfg           GatedDeltaRuleConfig
	}{
		{"q: ", nil, q, v, rows, rows, GatedDeltaRuleConfig{}},
		{"beta: ", q, q, v, rows, nil, GatedDeltaRuleConfig{}},
		{"must be [batch, heads, length, head_dim]", q, q.Squeeze(0), v, rows, rows, GatedDeltaRuleConfig{}},
		{"q is float32 and v is float16", q, q, v.AsType(mlxc.Float16), rows, rows, GatedDeltaRuleConfig{}},
		{"it must be float32, float16 or bfloat16", q.AsType(mlxc.Int32), q, v, rows, rows, GatedDeltaRuleConfig{}},
		{"must be a multiple of 16 from 16 to 256", zeros(1, 2, 5, 24), q, v, rows, rows, GatedDeltaRuleConfig{}},
		{"v has rows of 272 elements", q, q, zeros(1, 4, 5, 272), rows, rows, GatedDeltaRuleConfig{}},
		{"they must be equal", q, zeros(1, 1, 5, 16), v, rows, rows, GatedDeltaRuleConfig{}},
		{"v has 3 heads; their number must be a multiple of the 2 heads", q, q, zeros(1, 3, 5, 32), rows, rows, GatedDeltaRuleConfig{}},
		{"at least one head", zeros(1, 0, 5, 16), zeros(1, 0, 5, 16), v, rows, rows, GatedDeltaRuleConfig{}},
		{"q has 2 batches and v has 1", zeros(2, 2, 5, 16), zeros(2, 2, 5, 16), v, rows, rows, GatedDeltaRuleConfig{}},
		{"q has length 5 and v has length 6", q, q, zeros(1, 4, 6, 32), rows, rows, GatedDeltaRuleConfig{}},
		{"one number for each row of v", q, q, v, zeros(1, 4), rows, GatedDeltaRuleConfig{}},
		{"a number for each channel is not supported", q, q, v, zeros(1, 4, 5, 16), rows, GatedDeltaRuleConfig{}},
		{"logDecay is float16; it must be float32", q, q, v, rows.AsType(mlxc.Float16), rows, GatedDeltaRuleConfig{}},
		{"Scale is NaN", q, q, v, rows, rows, GatedDeltaRuleConfig{Scale: float32(math.NaN())}},
		{"InitialState has the shape [1 4 32 16]", q, q, v, rows, rows, GatedDeltaRuleConfig{InitialState: zeros(1, 4, 32, 16)}},
		{"InitialState is int32", q, q, v, rows, rows, GatedDeltaRuleConfig{InitialState: mlxc.Zeros(mlxc.Int32, 1, 4, 16, 32)}},
		{"Starts goes from 0 to 4", q, q, v, rows, rows, starts(0, 4)},
		{"Starts descends", q, q, v, rows, rows, starts(0, 3, 2, 5)},
		{"at least two elements", q, q, v, rows, rows, starts(0)},
		{
			"q has 2 batches; packed sequences need exactly 1", zeros(2, 2, 5, 16), zeros(2, 2, 5, 16), zeros(2, 4, 5, 32),
			zeros(2, 4, 5), zeros(2, 4, 5), starts(0, 5),
		},
	} {
		out, state := GatedDeltaRule(c.q, c.k, c.v, c.d, c.b, c.cfg)
		require.ErrorContains(t, out.Err(), c.want)
		require.ErrorContains(t, out.Err(), "ops.GatedDeltaRule")
		require.ErrorContains(t, state.Err(), c.want)
	}
	_, state := GatedDeltaStep(q.Squeeze(0), q, v, rows, rows, v, 0)
	require.ErrorContains(t, state.Err(), "ops.GatedDeltaStep")
	require.ErrorContains(t, state.Err(), "must be [batch, heads, head_dim]")
	q, v, rows = zeros(1, 2, 16), zeros(1, 4, 32), zeros(1, 4)
	_, state = GatedDeltaStep(q, q, v, rows, rows, zeros(1, 4, 16, 16), 0)
	require.ErrorContains(t, state.Err(), "state has the shape [1 4 16 16]")
	_, state = GatedDeltaStep(q, q, v, rows, rows, zeros(1, 4, 16, 32), float32(math.Inf(1)))
	require.ErrorContains(t, state.Err(), "scale is +Inf")
}
