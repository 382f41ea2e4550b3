package ops

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/quickcompile"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// An attentionCase is a configuration with its operands: q, k, v, and every other array with a gradient.
type attentionCase struct {
	name string
	cfg  AttentionConfig
	args arrays
}

// function returns f, with the case's options, as a function of args.
func (c attentionCase) function(f func(q, k, v *mlxc.Array, cfg AttentionConfig) (out, lse *mlxc.Array)) mlxc.Func {
	return func(args arrays) arrays {
		cfg, rest := c.cfg.withScale(args[0].Dim(-1)), args[3:]
		if cfg.Mask != nil && cfg.Mask.DType() != mlxc.Bool {
			cfg.Mask, rest = rest[0], rest[1:]
		}
		if cfg.Sinks != nil {
			cfg.Sinks = rest[0]
		}
		out, lse := f(args[0], args[1], args[2], cfg)
		return arrays{out, lse}
	}
}

// only returns f with output i as its only output.
func only(i int, f mlxc.Func) mlxc.Func {
	return func(args arrays) arrays { return f(args)[i : i+1] }
}

const attBatch, attHeads, attKVHeads, attQueries, attKeys, attDim, attValueDim = 2, 4, 2, 5, 7, 8, 6

// someAttention returns a case for each option and one for several options together.
func someAttention(dtype mlxc.DType) []attentionCase {
	bias := normal(4, dtype, attHeads, 1, attKeys)
	seen := normal(5, mlxc.Float32, attBatch, 1, attQueries, attKeys).Greater(mlxc.Scalar[float32](-0.5))
	sinks := normal(6, dtype, attHeads)
	// Sequences of 2, 0 and 3 queries, and of 3, 1 and 3 keys.
	queryStarts, keyStarts := mlxc.FromSlice([]int32{0, 2, 2, 5}), mlxc.FromSlice([]int32{0, 3, 4, 7})
	var cases []attentionCase
	for _, c := range []attentionCase{
		{name: "plain"},
		{name: "scale", cfg: AttentionConfig{Scale: 0.7}},
		{name: "causal", cfg: AttentionConfig{Causal: true}},
		{name: "window", cfg: AttentionConfig{Window: &Window{Left: 2, Right: 1}}},
		{name: "booleans", cfg: AttentionConfig{Mask: seen}},
		{name: "added", cfg: AttentionConfig{Mask: bias, Causal: true}},
		{name: "sinks", cfg: AttentionConfig{Sinks: sinks}},
		{name: "soft-cap", cfg: AttentionConfig{SoftCap: 0.8}},
		{name: "sequences", cfg: AttentionConfig{QueryStarts: queryStarts, KeyStarts: keyStarts, Causal: true}},
		{name: "several", cfg: AttentionConfig{
			Scale: 0.9, SoftCap: 0.8, Mask: bias, Sinks: sinks, Window: &Window{Left: 3, Right: Unbounded},
		}},
	} {
		batch := attBatch
		if c.cfg.QueryStarts != nil {
			batch = 1
		}
		c.args = arrays{
			normal(1, dtype, batch, attHeads, attQueries, attDim),
			normal(2, dtype, batch, attKVHeads, attKeys, attDim),
			normal(3, dtype, batch, attKVHeads, attKeys, attValueDim),
		}
		if c.cfg.Mask == bias {
			c.args = append(c.args, bias)
		}
		if c.cfg.Sinks != nil {
			c.args = append(c.args, sinks)
		}
		cases = append(cases, c)
	}
	return cases
}

// The value and the gradients equal the composition's under every transform. Each output is tested on its own,
// which leaves the other without a cotangent.
func TestAttentionUnderTransforms(t *testing.T) {
	for _, dtype := range gradientDTypes {
		for n, c := range someAttention(dtype) {
			if !inSample(n, dtype) {
				continue
			}
			ours, theirs := c.function(AttentionLogSumExp), c.function(attentionMLX)
			for i, output := range []string{"out", "lse"} {
				t.Run(fmt.Sprintf("%v/%s/%s", dtype, c.name, output), func(t *testing.T) {
					like := theirs(c.args)[i]
					dy := normal(7, like.DType(), like.Shape()...)
					testUnderTransforms(t, only(i, ours), only(i, theirs), c.args, dy)
				})
			}
		}
	}
}

func TestAttentionRefusesSecondDerivatives(t *testing.T) {
	for i := range someAttention(mlxc.Float32) {
		dtype := gradientDTypes[i%len(gradientDTypes)] // the kernels are compiled in these cases
		c := someAttention(dtype)[i]
		t.Run(c.name, func(t *testing.T) {
			f := only(0, c.function(AttentionLogSumExp))
			dout := normal(7, dtype, f(c.args)[0].Shape()...)
			gradient := func(args arrays) arrays { return vjpOf(f)(append(arrays{dout}, args...))[1:2] }
			_, _, err := mlxc.VJP(gradient, c.args, c.args[:1])
			require.ErrorContains(t, err, "attention")
			require.ErrorContains(t, err, "no gradient")
		})
	}
}

// Two keys with the scores 0 and ln 3 have the weights ¼ and ¾.
func TestAttentionByHand(t *testing.T) {
	ln3 := float32(math.Log(3))
	q, k := mlxc.FromSlice([]float32{2}, 1, 1, 1, 1), mlxc.FromSlice([]float32{0, ln3}, 1, 1, 2, 1)
	v := mlxc.FromSlice([]float32{4, 0, 0, 8}, 1, 1, 2, 2)
	dout, dlse := mlxc.Ones(mlxc.Float32, 1, 1, 1, 2), mlxc.FromSlice([]float32{2}, 1, 1, 1)
	c := attentionCase{cfg: AttentionConfig{Scale: 0.5}, args: arrays{q, k, v}}

	// ⟨dout, v⟩ = (4, 8), delta = 7, dS = ¼(4 − 7 + 2), ¾(8 − 7 + 2).
	outputs, grads, err := mlxc.VJP(c.function(AttentionLogSumExp), c.args, arrays{dout, dlse})
	require.NoError(t, err)
	require.InDeltaSlice(t, []float32{1, 6}, mlxtest.Floats(t, outputs[0]), 1e-6)
	require.InDeltaSlice(t, []float32{2 * float32(math.Ln2)}, mlxtest.Floats(t, outputs[1]), 1e-6)
	require.InDeltaSlice(t, []float32{0.5 * 2.25 * ln3}, mlxtest.Floats(t, grads[0]), 1e-6)
	require.InDeltaSlice(t, []float32{-0.25, 2.25}, mlxtest.Floats(t, grads[1]), 2e-6)
	require.InDeltaSlice(t, []float32{0.25, 0.25, 0.75, 0.75}, mlxtest.Floats(t, grads[2]), 1e-6)

	// A sink of ln 4 gets half of the weight: delta is 3.5, and the two weights are ⅛ and ⅜.
	mask, sinks := mlxc.Zeros(mlxc.Float32, 1, 2), mlxc.FromSlice([]float32{2 * float32(math.Ln2)})
	c = attentionCase{cfg: AttentionConfig{Scale: 0.5, Mask: mask, Sinks: sinks}, args: arrays{q, k, v, mask, sinks}}
	outputs, grads, err = mlxc.VJP(only(0, c.function(AttentionLogSumExp)), c.args, arrays{dout})
	require.NoError(t, err)
	require.InDeltaSlice(t, []float32{0.5, 3}, mlxtest.Floats(t, outputs[0]), 1e-6)
	require.InDeltaSlice(t, []float32{0.5 / 8, 4.5 * 3 / 8}, mlxtest.Floats(t, grads[3]), 2e-6)
	require.InDeltaSlice(t, []float32{-3.5 / 2}, mlxtest.Floats(t, grads[4]), 2e-6)
}

var _ = testdevice.AlsoOnGPU(TestAttentionByHand)

// The geometries of all backends give the same results on the CPU.
func TestAttentionInEveryGeometry(t *testing.T) {
	for _, c := range attentionShapes(RaggedCases) {
		if !long.Full() && !slices.Contains([]string{"booleans", "wide heads, mask"}, c.name) {
			continue // each takes seconds to compile
		}
		t.Run(c.name, func(t *testing.T) {
			in, cfg := c.inputs(mlxc.Float32)
			gradients := func(d mlxc.Backend) []*mlxc.Array {
				on := target{backend: d}
				out, statistics := attentionForward(on, in, cfg)
				dOut, dLSE := normalOf(6, mlxc.Float32, out.Shape()...), normalOf(7, mlxc.Float32, out.Shape()[:3]...)
				return append(attentionBackward(on, in, out, statistics, dOut, dLSE, cfg), out, logSumExp(statistics))
			}
			want := gradients(mlxc.BackendCPU)
			for _, d := range []mlxc.Backend{mlxc.BackendMetal, mlxc.BackendCUDA} {
				for i, got := range gradients(d) {
					if want[i] != nil && want[i].DType() == mlxc.Float32 {
						closeTo(t, want[i], got)
					}
				}
			}
		})
	}
}

// The cap comes before the mask, and the mask before the sink: a score of 100, capped to 2, becomes 0 under a mask of
// −2, beside a sink of 0.
func TestAttentionOrder(t *testing.T) {
	one := mlxc.Ones(mlxc.Float32, 1, 1, 1, 1)
	out, lse := AttentionLogSumExp(one, one, one, AttentionConfig{
		Scale: 100, SoftCap: 2, Mask: mlxc.FromSlice([]float32{-2}, 1), Sinks: mlxc.Zeros(mlxc.Float32, 1),
	})
	require.InDeltaSlice(t, []float32{0.5}, mlxtest.Floats(t, out), 1e-6)
	require.InDeltaSlice(t, []float32{float32(math.Ln2)}, mlxtest.Floats(t, lse), 1e-6)
}

var _ = testdevice.AlsoOnGPU(TestAttentionOrder)

// CausalAttention of heads side by side in rows equals Attention of separate heads.
func TestCausalAttention(t *testing.T) {
	const heads, kvHeads, dim, valueDim = 4, 2, 8, 6
	for _, dtype := range gradientDTypes {
		for _, lead := range [][]int{nil, {3}} {
			shape := func(length, width int) []int { return append(append([]int{}, lead...), length, width) }
			q, k := normal(1, dtype, shape(5, heads*dim)...), normal(2, dtype, shape(7, kvHeads*dim)...)
			v, dout := normal(3, dtype, shape(7, kvHeads*valueDim)...), normal(4, dtype, shape(5, heads*valueDim)...)
			apart := func(x *mlxc.Array, heads int) *mlxc.Array {
				batch := x.Size() / (x.Dim(-1) * x.Dim(-2))
				return x.Reshape(batch, x.Dim(-2), heads, x.Dim(-1)/heads).Transpose(0, 2, 1, 3)
			}
			theirs := func(args arrays) arrays {
				cfg := AttentionConfig{Causal: true}.withScale(dim)
				out, _ := attentionMLX(apart(args[0], heads), apart(args[1], kvHeads), apart(args[2], kvHeads), cfg)
				return arrays{out.Transpose(0, 2, 1, 3).Reshape(dout.Shape()...)}
			}
			ours := func(args arrays) arrays {
				return arrays{CausalAttention(args[0], args[1], args[2], heads, kvHeads)}
			}
			t.Run(fmt.Sprintf("%v/%v", dtype, lead), func(t *testing.T) {
				want, wantGrads, err := mlxc.VJP(theirs, arrays{q, k, v}, arrays{dout})
				require.NoError(t, err)
				got, grads, err := mlxc.VJP(ours, arrays{q, k, v}, arrays{dout})
				require.NoError(t, err)
				closeTo(t, want[0], got[0])
				for i := range grads {
					closeTo(t, wantGrads[i], grads[i])
				}
			})
		}
	}
}

// The tiles of the widest heads and the columns of a product fit the stack of a fiber, at the optimization level that
// users get, which inlines more.
func TestAttentionOfWideHeads(t *testing.T) {
	quick := quickcompile.Enabled()
	t.Cleanup(func() { quickcompile.Set(quick) })
	quickcompile.Set(false)
	for _, dim := range []int{192, 256} {
		args := arrays{
			normal(1, mlxc.Float32, 1, 2, 40, dim), normal(2, mlxc.Float32, 1, 2, 67, dim), normal(3, mlxc.Float32, 1, 2, 67, dim),
		}
		dout := arrays{normal(4, mlxc.Float32, 1, 2, 40, dim)}
		cfg := AttentionConfig{Causal: true}.withScale(dim)
		_, want, err := mlxc.VJP(func(a arrays) arrays {
			out, _ := attentionMLX(a[0], a[1], a[2], cfg)
			return arrays{out}
		}, args, dout)
		require.NoError(t, err)
		_, got, err := mlxc.VJP(func(a arrays) arrays { return arrays{Attention(a[0], a[1], a[2], cfg)} }, args, dout)
		require.NoError(t, err)
		for i := range want {
			closeTo(t, want[i], got[i])
		}
	}
}

// Without packed sequences the grid has no threadgroup more than the rows fill.
func TestAttentionLaunchesNoEmptyThreadgroups(t *testing.T) {
	for _, l := range KernelLaunches(RaggedCases) {
		if l.Op == "attention" && strings.HasPrefix(l.Case, "plain") {
			require.LessOrEqual(t, l.Launch.Grid[0], l.Launch.Threadgroup[0], l.Name())
		}
	}
}

// Outputs and gradients have the same bits in every run.
func TestAttentionGivesTheSameBits(t *testing.T) {
	for _, dtype := range sampleDTypes(2) {
		q, k, v := normal(1, dtype, 1, 4, 65, 16), normal(2, dtype, 1, 2, 129, 16), normal(3, dtype, 1, 2, 129, 16)
		mask, sinks := normal(4, dtype, 1, 129), normal(5, dtype, 4)
		cfg := AttentionConfig{Causal: true, Mask: mask, Sinks: sinks}
		c := attentionCase{cfg: cfg, args: arrays{q, k, v, mask, sinks}}
		cotangents := arrays{normal(6, dtype, 1, 4, 65, 16), normal(7, mlxc.Float32, 1, 4, 65)}
		requireSameBits(t, 20, c.function(AttentionLogSumExp), c.args, cotangents)
	}
}

// requireSameBits requires that outputs and gradients have the same bits in this number of runs.
func requireSameBits(t *testing.T, runs int, f mlxc.Func, args, cotangents arrays) {
	t.Helper()
	var first [][]float32
	for range runs {
		outputs, grads, err := mlxc.VJP(f, args, cotangents)
		require.NoError(t, err)
		var again [][]float32
		for _, a := range append(outputs, grads...) {
			again = append(again, mlxtest.Floats(t, a))
		}
		if first == nil {
			first = again
		}
		require.Equal(t, first, again)
	}
}

// MLX's fused forward kernel runs only in the cases that it supports with the same semantics.
func TestAttentionFusedByMLX(t *testing.T) {
	plain := func(queries, keys, width, valueWidth int) arrays {
		return arrays{
			mlxc.Zeros(mlxc.Float16, 1, 2, queries, width), mlxc.Zeros(mlxc.Float16, 1, 2, keys, width),
			mlxc.Zeros(mlxc.Float16, 1, 2, keys, valueWidth),
		}
	}
	mask, sinks := mlxc.Ones(mlxc.Bool, 1, 1), mlxc.Zeros(mlxc.Float16, 2)
	for _, c := range []struct {
		name  string
		cfg   AttentionConfig
		args  arrays
		fused bool
	}{
		{"plain", AttentionConfig{}, plain(4, 4, 64, 64), true},
		{"scale, sinks", AttentionConfig{Scale: 2, Sinks: sinks}, plain(4, 4, 128, 128), true},
		{"causal", AttentionConfig{Causal: true}, plain(4, 9, 80, 80), true},
		{"rows that see nothing", AttentionConfig{Causal: true}, plain(9, 4, 64, 64), false},
		{"no keys", AttentionConfig{}, plain(4, 0, 64, 64), false},
		{"another width", AttentionConfig{}, plain(4, 4, 72, 72), false},
		{"two widths", AttentionConfig{}, plain(4, 4, 64, 80), false},
		{"window", AttentionConfig{Window: &Window{}}, plain(4, 4, 64, 64), false},
		{"mask", AttentionConfig{Mask: mask}, plain(4, 4, 64, 64), false},
		{"soft-cap", AttentionConfig{SoftCap: 1}, plain(4, 4, 64, 64), false},
		{"sequences", AttentionConfig{QueryStarts: mask, KeyStarts: mask}, plain(4, 4, 64, 64), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.fused, c.cfg.fusedByMLX(mlxc.BackendMetal, c.args[0], c.args[1], c.args[2]))
			require.Equal(t, c.fused, c.cfg.fusedByMLX(mlxc.BackendCUDA, c.args[0], c.args[1], c.args[2]))
			require.False(t, c.cfg.fusedByMLX(mlxc.BackendCPU, c.args[0], c.args[1], c.args[2]))
		})
	}
}
