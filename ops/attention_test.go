package ops

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// attentionCase is a configuration and its operands: q, k, v, and what else has a
// gradient.
type attentionCase struct {
	name string
	cfg  AttentionConfig
	args arrays
}

// function makes f a function of args.
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

// only is f with one of its outputs.
func only(i int, f mlxc.Func) mlxc.Func {
	return func(args arrays) arrays { return f(args)[i : i+1] }
}

const attBatch, attHeads, attKVHeads, attQueries, attKeys, attDim, attValueDim = 2, 4, 2, 5, 7, 8, 6

// someAttention has every option alone and some together.
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
		{name: "much", cfg: AttentionConfig{Scale: 0.9, SoftCap: 0.8, Mask: bias, Sinks: sinks, Window: &Window{Left: 3, Right: Unbounded}}},
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

// The value and the gradients are those of the composition, under every transform and
// for each output alone, whose other cotangent is then nothing.
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
		dtype := gradientDTypes[i%len(gradientDTypes)] // in which the kernels have been compiled
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

// Of two keys with the scores 0 and ln 3 the weights are ¼ and ¾.
func TestAttentionByHand(t *testing.T) {
	ln3 := float32(math.Log(3))
	q, k := mlxc.FromSlice([]float32{2}, 1, 1, 1, 1), mlxc.FromSlice([]float32{0, ln3}, 1, 1, 2, 1)
	v := mlxc.FromSlice([]float32{4, 0, 0, 8}, 1, 1, 2, 2)
	dout, dlse := mlxc.Ones(mlxc.Float32, 1, 1, 1, 2), mlxc.FromSlice([]float32{2}, 1, 1, 1)
	c := attentionCase{cfg: AttentionConfig{Scale: 0.5}, args: arrays{q, k, v}}

	// ⟨dout, v⟩ = (4, 8), delta = 7, dS = ¼(4 − 7 + 2), ¾(8 − 7 + 2).
	outputs, grads, err := mlxc.VJP(c.function(AttentionLogSumExp), c.args, arrays{dout, dlse})
	require.NoError(t, err)
	require.InDeltaSlice(t, []float32{1, 6}, floats(t, outputs[0]), 1e-6)
	require.InDeltaSlice(t, []float32{2 * float32(math.Ln2)}, floats(t, outputs[1]), 1e-6)
	require.InDeltaSlice(t, []float32{0.5 * 2.25 * ln3}, floats(t, grads[0]), 1e-6)
	require.InDeltaSlice(t, []float32{-0.25, 2.25}, floats(t, grads[1]), 2e-6)
	require.InDeltaSlice(t, []float32{0.25, 0.25, 0.75, 0.75}, floats(t, grads[2]), 1e-6)

	// A sink of ln 4 has half of the sum: delta = 3.5, and the two weights are ⅛ and ⅜.
	mask, sinks := mlxc.Zeros(mlxc.Float32, 1, 2), mlxc.FromSlice([]float32{2 * float32(math.Ln2)})
	c = attentionCase{cfg: AttentionConfig{Scale: 0.5, Mask: mask, Sinks: sinks}, args: arrays{q, k, v, mask, sinks}}
	outputs, grads, err = mlxc.VJP(only(0, c.function(AttentionLogSumExp)), c.args, arrays{dout})
	require.NoError(t, err)
	require.InDeltaSlice(t, []float32{0.5, 3}, floats(t, outputs[0]), 1e-6)
	require.InDeltaSlice(t, []float32{0.5 / 8, 4.5 * 3 / 8}, floats(t, grads[3]), 2e-6)
	require.InDeltaSlice(t, []float32{-3.5 / 2}, floats(t, grads[4]), 2e-6)
}

var _ = testdevice.AlsoOnGPU(TestAttentionByHand)

// Weights are exact where a mask makes all scores huge, as it does of rows that are padding: 1/n of n.
func TestAttentionOfHugeMask(t *testing.T) {
	for _, dtype := range sampleDTypes(2) {
		t.Run(dtype.String(), func(t *testing.T) {
			const n = 32
			q, k, v := mlxc.Zeros(dtype, 1, 1, 8, 8), mlxc.Zeros(dtype, 1, 1, n, 8), normal(1, dtype, 1, 1, n, 8)
			mask := mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(-1e9)), 8, n)
			_, grads, err := mlxc.VJP(func(a arrays) arrays {
				return arrays{Attention(a[0], a[1], a[2], AttentionConfig{Mask: mask})}
			}, arrays{q, k, v}, arrays{mlxc.Ones(dtype, 1, 1, 8, 8)})
			require.NoError(t, err)
			closeTo(t, mlxc.Full(dtype, mlxc.Scalar(float32(8.0/n)), 1, 1, n, 8), grads[2])
		})
	}
}

// Every entry of the geometry table computes the same, whatever device it is meant for.
func TestAttentionInEveryGeometry(t *testing.T) {
	for _, c := range attentionShapes(RaggedCases) {
		if !long.Full() && !slices.Contains([]string{"booleans", "wide heads, mask"}, c.name) {
			continue // each compiles for seconds
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

// The cap, the mask and the sink come one after the other: a score of 100 capped to 2 is
// hidden by a mask of −2 to 0, beside a sink of 0.
func TestAttentionOrder(t *testing.T) {
	one := mlxc.Ones(mlxc.Float32, 1, 1, 1, 1)
	out, lse := AttentionLogSumExp(one, one, one, AttentionConfig{
		Scale: 100, SoftCap: 2, Mask: mlxc.FromSlice([]float32{-2}, 1), Sinks: mlxc.Zeros(mlxc.Float32, 1),
	})
	require.InDeltaSlice(t, []float32{0.5}, floats(t, out), 1e-6)
	require.InDeltaSlice(t, []float32{float32(math.Ln2)}, floats(t, lse), 1e-6)
}

var _ = testdevice.AlsoOnGPU(TestAttentionOrder)

// A row that sees nothing has the output 0, the log-sum-exp −∞ and no gradient, whatever
// hides the keys, and the other rows are as ever.
func TestAttentionOfRowsThatSeeNothing(t *testing.T) {
	const queries, keys = 6, 3
	inf := float32(math.Inf(-1))
	seen, bias := make([]bool, queries*keys), make([]float32, queries*keys)
	for i := range seen {
		seen[i] = i >= 3*keys
		if !seen[i] {
			bias[i] = inf
		}
	}
	added := mlxc.FromSlice(bias, queries, keys)
	for _, dtype := range gradientDTypes {
		q, k := normal(1, dtype, 1, 2, queries, 8), normal(2, dtype, 1, 1, keys, 8)
		configs := map[string]AttentionConfig{
			"causal":           {Causal: true},
			"window":           {Window: &Window{Left: Unbounded, Right: 0}},
			"booleans":         {Mask: mlxc.FromSlice(seen, queries, keys)},
			"minus infinity":   {Mask: added.AsType(dtype)},
			"float32 mask":     {Mask: added},
			"sequences":        {QueryStarts: mlxc.FromSlice([]int32{0, 3, 6}), KeyStarts: mlxc.FromSlice([]int32{0, 0, 3})},
			"booleans, capped": {Mask: mlxc.FromSlice(seen, queries, keys), SoftCap: 2},
		}
		for i, name := range slices.Sorted(maps.Keys(configs)) {
			if !inSample(i, dtype) {
				continue
			}
			cfg := configs[name]
			t.Run(fmt.Sprintf("%v/%s", dtype, name), func(t *testing.T) {
				c := attentionCase{cfg: cfg, args: arrays{q, k, k}}
				if cfg.Mask != nil && cfg.Mask.DType() != mlxc.Bool {
					c.args = append(c.args, cfg.Mask)
				}
				cotangents := arrays{normal(3, dtype, 1, 2, queries, 8), normal(4, mlxc.Float32, 1, 2, queries)}
				outputs, grads, err := mlxc.VJP(c.function(AttentionLogSumExp), c.args, cotangents)
				require.NoError(t, err)
				for row := range 2 * queries {
					empty := row%queries < 3
					sum := float32(0)
					for d := range 8 {
						require.Equal(t, empty, floats(t, outputs[0])[row*8+d] == 0)
						sum += floats(t, grads[0])[row*8+d]
					}
					require.Equal(t, empty, floats(t, outputs[1])[row] == inf)
					require.Equal(t, empty, sum == 0)
				}
				for _, g := range grads {
					for _, v := range floats(t, g) {
						require.False(t, math.IsNaN(float64(v)))
					}
				}
			})
		}
	}
}

// A block of the mask's rows has a whole sequence and of the next one rows that see nothing yet.
func TestMaskGradientOfSequences(t *testing.T) {
	const queries, keys = 205, 12
	c := attentionCase{args: arrays{
		normal(1, mlxc.Float32, 1, 1, queries, 8), normal(2, mlxc.Float32, 1, 1, keys, 8),
		normal(3, mlxc.Float32, 1, 1, keys, 8), normal(4, mlxc.Float32, queries, keys),
	}}
	c.cfg = AttentionConfig{
		Mask: c.args[3], Causal: true,
		QueryStarts: mlxc.FromSlice([]int32{0, 5, queries}), KeyStarts: mlxc.FromSlice([]int32{0, 9, keys}),
	}
	dout := normal(5, mlxc.Float32, 1, 1, queries, 8)
	_, want, err := mlxc.VJP(only(0, c.function(attentionMLX)), c.args, arrays{dout})
	require.NoError(t, err)
	_, got, err := mlxc.VJP(only(0, c.function(AttentionLogSumExp)), c.args, arrays{dout})
	require.NoError(t, err)
	for i := range want {
		closeTo(t, want[i], got[i])
	}
}

// A mask and sinks may have another dtype than q, and their gradients have it.
func TestAttentionOfOtherDTypes(t *testing.T) {
	q, k := normal(1, mlxc.Float16, 1, 2, 5, 8), normal(2, mlxc.Float16, 1, 2, 5, 8)
	mask, sinks := normal(3, mlxc.Float32, 1, 5), normal(4, mlxc.BFloat16, 2)
	c := attentionCase{cfg: AttentionConfig{Mask: mask, Sinks: sinks}, args: arrays{q, k, k, mask, sinks}}
	dout := normal(5, mlxc.Float16, 1, 2, 5, 8)
	_, want, err := mlxc.VJP(only(0, c.function(attentionMLX)), c.args, arrays{dout})
	require.NoError(t, err)
	_, got, err := mlxc.VJP(only(0, c.function(AttentionLogSumExp)), c.args, arrays{dout})
	require.NoError(t, err)
	for i := range want {
		closeTo(t, want[i], got[i])
	}
	require.Equal(t, mlxc.Float32, got[3].DType())
	require.Equal(t, mlxc.BFloat16, got[4].DType())
}

// Operands and cotangents may lie in memory in any way.
func TestAttentionOfLayouts(t *testing.T) {
	for _, dtype := range sampleDTypes(1) {
		for name, x := range map[string]*mlxc.Array{
			"heads side by side": normal(1, dtype, 2, 33, 3, 16).Transpose(0, 2, 1, 3),
			"transposed":         normal(1, dtype, 2, 3, 16, 33).SwapAxes(-1, -2),
			"strided":            normal(1, dtype, 2, 3, 33, 48).Slice([]int{0, 0, 0, 1}, []int{2, 3, 33, 48}, []int{1, 1, 1, 3}),
			"offset":             normal(1, dtype, 3, 3, 33, 16).Slice([]int{1, 0, 0, 0}, []int{3, 3, 33, 16}, nil),
			"rows left out":      normal(1, dtype, 2, 3, 66, 16).Slice([]int{0, 0, 0, 0}, []int{2, 3, 66, 16}, []int{1, 1, 2, 1}),
			"broadcast":          normal(1, dtype, 1, 3, 33, 16).BroadcastTo(2, 3, 33, 16),
		} {
			t.Run(fmt.Sprintf("%v/%s", dtype, name), func(t *testing.T) {
				dense := x.Contiguous()
				others := arrays{normal(2, dtype, 2, 3, 33, 16), normal(3, dtype, 2, 3, 33, 16), normal(4, dtype, 2, 3, 33, 16)}
				c := attentionCase{cfg: AttentionConfig{Causal: true}}
				for i := range 4 { // dout comes last.
					with := func(x *mlxc.Array) arrays {
						all := append(arrays{}, others...)
						return append(all[:i:i], append(arrays{x}, all[i:]...)...)
					}
					a, b := with(dense), with(x)
					want, wantGrads, err := mlxc.VJP(only(0, c.function(attentionMLX)), a[:3], a[3:])
					require.NoError(t, err)
					got, grads, err := mlxc.VJP(only(0, c.function(AttentionLogSumExp)), b[:3], b[3:])
					require.NoError(t, err)
					closeTo(t, want[0], got[0])
					for j := range grads {
						closeTo(t, wantGrads[j], grads[j])
					}
				}
			})
		}
	}
}

// What is not an argument has no gradient, and costs none.
func TestAttentionOfCaptured(t *testing.T) {
	q, k, v := normal(1, mlxc.Float32, 1, 2, 5, 8), normal(2, mlxc.Float32, 1, 2, 7, 8), normal(3, mlxc.Float32, 1, 2, 7, 8)
	cfg := AttentionConfig{Mask: normal(4, mlxc.Float32, 5, 7), Sinks: normal(5, mlxc.Float32, 2)}
	dout := normal(6, mlxc.Float32, 1, 2, 5, 8)
	of := func(q, k, v *mlxc.Array) arrays { return arrays{Attention(q, k, v, cfg)} }
	_, want, err := mlxc.VJP(func(a arrays) arrays { return of(a[0], a[1], a[2]) }, arrays{q, k, v}, arrays{dout})
	require.NoError(t, err)
	for i, f := range []mlxc.Func{
		func(a arrays) arrays { return of(a[0], k, v) },
		func(a arrays) arrays { return of(q, a[0], v) },
		func(a arrays) arrays { return of(q, k, a[0]) },
	} {
		_, got, err := mlxc.VJP(f, arrays{q, k, v}[i:i+1], arrays{dout})
		require.NoError(t, err)
		require.Len(t, got, 1)
		closeTo(t, want[i], got[0])
	}
	// One array in several places has the sum of their gradients.
	square := normal(7, mlxc.Float32, 1, 2, 5, 8)
	alone := func(a arrays) arrays { return arrays{Attention(a[0], a[0], a[0], AttentionConfig{Causal: true})} }
	_, got, err := mlxc.VJP(alone, arrays{square}, arrays{dout})
	require.NoError(t, err)
	apart := func(a arrays) arrays { return arrays{Attention(a[0], a[1], a[2], AttentionConfig{Causal: true})} }
	_, parts, err := mlxc.VJP(apart, arrays{square, square, square}, arrays{dout})
	require.NoError(t, err)
	closeTo(t, parts[0].Add(parts[1]).Add(parts[2]), got[0])
}

// Starts that are not computed yet are not looked at, and mean the same.
func TestAttentionOfLazyStarts(t *testing.T) {
	q, k := normal(1, mlxc.Float32, 1, 2, 5, 8), normal(2, mlxc.Float32, 1, 2, 7, 8)
	queryStarts, keyStarts := mlxc.FromSlice([]int32{0, 2, 5}), mlxc.FromSlice([]int32{0, 3, 7})
	want := Attention(q, k, k, AttentionConfig{QueryStarts: queryStarts, KeyStarts: keyStarts})
	got := Attention(q, k, k, AttentionConfig{QueryStarts: lazily(queryStarts), KeyStarts: lazily(keyStarts)})
	require.Equal(t, floats(t, want), floats(t, got))

	// Each sequence is attention of its own.
	for _, s := range [][4]int{{0, 2, 0, 3}, {2, 5, 3, 7}} {
		part := func(x *mlxc.Array, from, to int) *mlxc.Array {
			return x.Slice([]int{0, 0, from, 0}, []int{1, 2, to, 8}, nil)
		}
		keys := part(k, s[2], s[3])
		closeTo(t, Attention(part(q, s[0], s[1]), keys, keys, AttentionConfig{}), part(got, s[0], s[1]))
	}
	// Wrong ones that nobody looked at give some numbers, and no harm.
	gradients := func(queryStarts, keyStarts *mlxc.Array) arrays {
		out, grads, err := mlxc.VJP(func(a arrays) arrays {
			return arrays{Attention(a[0], a[1], a[2], AttentionConfig{QueryStarts: queryStarts, KeyStarts: keyStarts, Causal: true})}
		}, arrays{q, k, k}, arrays{q})
		require.NoError(t, err)
		require.NoError(t, mlxc.Eval(append(out, grads...)...))
		return append(out, grads...)
	}
	for _, wrong := range [][]int32{
		{0, 9, 5}, {3, 2, 1}, {-4, 1 << 30, -1 << 31}, {1000, 1064, 1128}, {1 << 30, 1<<30 + 1, 1<<30 + 2}, {0, 0, 0},
	} {
		starts := func() *mlxc.Array { return lazily(mlxc.FromSlice(wrong)) }
		gradients(starts(), starts())
		gradients(queryStarts, starts())
		gradients(starts(), keyStarts)
	}
	// The first and the last one say nothing.
	inner := gradients(lazily(mlxc.FromSlice([]int32{1, 2, 3})), lazily(mlxc.FromSlice([]int32{-5, 3, 0})))
	for i, want := range gradients(queryStarts, keyStarts) {
		require.Equal(t, floats(t, want), floats(t, inner[i]))
	}
}

var _ = testdevice.AlsoOnGPU(TestAttentionOfLazyStarts)

// Heads side by side in rows are those of Attention.
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
			ours := func(args arrays) arrays { return arrays{CausalAttention(args[0], args[1], args[2], heads, kvHeads)} }
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

func TestAttentionWithoutElements(t *testing.T) {
	for _, c := range []struct{ batch, queries, keys int }{{0, 3, 4}, {2, 0, 4}, {2, 3, 0}, {2, 0, 0}} {
		for _, cfg := range []AttentionConfig{
			{},
			{Causal: true, SoftCap: 2, Sinks: normal(1, mlxc.Float32, 4), Mask: mlxc.Zeros(mlxc.Float32, c.queries, c.keys)},
		} {
			t.Run(fmt.Sprintf("%+v/%t", c, cfg.Causal), func(t *testing.T) {
				q, k := mlxc.Ones(mlxc.Float32, c.batch, 4, c.queries, 8), mlxc.Ones(mlxc.Float32, c.batch, 2, c.keys, 8)
				with := attentionCase{cfg: cfg, args: arrays{q, k, k}}
				if cfg.Causal {
					with.args = append(with.args, cfg.Mask, cfg.Sinks)
				}
				cotangents := arrays{q, mlxc.Ones(mlxc.Float32, c.batch, 4, c.queries)}
				outputs, grads, err := mlxc.VJP(with.function(AttentionLogSumExp), with.args, cotangents)
				require.NoError(t, err)
				require.Equal(t, q.Shape(), outputs[0].Shape())
				require.Equal(t, make([]float32, q.Size()), append([]float32{}, floats(t, outputs[0])...))
				for i, v := range floats(t, outputs[1]) {
					want := float32(math.Inf(-1))
					if cfg.Sinks != nil {
						want = floats(t, cfg.Sinks)[i/c.queries%4]
					}
					require.Equal(t, want, v)
				}
				for i, g := range grads {
					require.Equal(t, with.args[i].Shape(), g.Shape())
					for _, v := range floats(t, g) {
						// Only a sink has a part in a log-sum-exp of nothing.
						require.Equal(t, map[bool]float32{true: float32(c.batch * c.queries)}[i == 4], v)
					}
				}
			})
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestAttentionWithoutElements)

// A length without sequences has no threadgroup more than its rows take.
func TestAttentionLaunchesNoEmptyThreadgroups(t *testing.T) {
	for _, l := range KernelLaunches(RaggedCases) {
		if l.Op == "attention" && strings.HasPrefix(l.Case, "plain") {
			require.LessOrEqual(t, l.Launch.Grid[0], l.Launch.Threadgroup[0], l.Name())
		}
	}
}

func TestAttentionGivesTheSameBits(t *testing.T) {
	for _, dtype := range sampleDTypes(2) {
		q, k, v := normal(1, dtype, 1, 4, 65, 16), normal(2, dtype, 1, 2, 129, 16), normal(3, dtype, 1, 2, 129, 16)
		mask, sinks := normal(4, dtype, 1, 129), normal(5, dtype, 4)
		c := attentionCase{cfg: AttentionConfig{Causal: true, Mask: mask, Sinks: sinks}, args: arrays{q, k, v, mask, sinks}}
		cotangents := arrays{normal(6, dtype, 1, 4, 65, 16), normal(7, mlxc.Float32, 1, 4, 65)}
		var first [][]float32
		for range 20 {
			outputs, grads, err := mlxc.VJP(c.function(AttentionLogSumExp), c.args, cotangents)
			require.NoError(t, err)
			var again [][]float32
			for _, a := range append(outputs, grads...) {
				again = append(again, floats(t, a))
			}
			if first == nil {
				first = again
			}
			require.Equal(t, first, again)
		}
	}
}

func TestAttentionRefuses(t *testing.T) {
	q, k := mlxc.Ones(mlxc.Float32, 2, 4, 3, 8), mlxc.Ones(mlxc.Float32, 2, 2, 5, 8)
	freed := mlxc.Ones(mlxc.Float32, 3, 5)
	freed.Free()
	starts := func(v ...int32) *mlxc.Array { return mlxc.FromSlice(v) }
	one := mlxc.Ones(mlxc.Float32, 1, 4, 3, 8)
	keys := mlxc.Ones(mlxc.Float32, 1, 2, 5, 8)
	nan := float32(math.NaN())
	with := func(c AttentionConfig) *mlxc.Array { return Attention(q, k, k, c) }
	packed := func(queryStarts, keyStarts *mlxc.Array) *mlxc.Array {
		return Attention(one, keys, keys, AttentionConfig{QueryStarts: queryStarts, KeyStarts: keyStarts})
	}
	for _, c := range []struct {
		name  string
		y     *mlxc.Array
		parts []string
	}{
		{"rank of q", Attention(q.Reshape(8, 3, 8), k, k, AttentionConfig{}), []string{"q", "float32(8,3,8)", "[batch, heads, length, head_dim]"}},
		{"rank of v", Attention(q, k, k.Flatten(0, 1), AttentionConfig{}), []string{"v", "float32(4,5,8)", "Reshape"}},
		{"integers", Attention(q.AsType(mlxc.Int32), k, k, AttentionConfig{}), []string{"q is int32", "AsType"}},
		{"float64", Attention(q.AsType(mlxc.Float64), k, k, AttentionConfig{}), []string{"q is float64", "AsType"}},
		{"dtypes", Attention(q, k.AsType(mlxc.Float16), k, AttentionConfig{}), []string{"q is float32 and k float16", "AsType"}},
		{"batches", Attention(q, keys, keys, AttentionConfig{}), []string{"2 batches and k has 1"}},
		{"heads", Attention(q, mlxc.Ones(mlxc.Float32, 2, 3, 5, 8), mlxc.Ones(mlxc.Float32, 2, 3, 5, 8), AttentionConfig{}), []string{"4 heads", "multiple of the 3"}},
		{"no heads", Attention(q, mlxc.Ones(mlxc.Float32, 2, 0, 5, 8), mlxc.Ones(mlxc.Float32, 2, 0, 5, 8), AttentionConfig{}), []string{"k is empty"}},
		{"no columns", Attention(q, k, mlxc.Ones(mlxc.Float32, 2, 2, 5, 0), AttentionConfig{}), []string{"v is empty"}},
		{"head_dim", Attention(q, mlxc.Ones(mlxc.Float32, 2, 2, 5, 4), k, AttentionConfig{}), []string{"head_dim of 8 and k one of 4"}},
		{"lengths", Attention(q, k, mlxc.Ones(mlxc.Float32, 2, 2, 6, 8), AttentionConfig{}), []string{"k and v", "same length"}},
		{"key heads", Attention(q, k, mlxc.Ones(mlxc.Float32, 2, 4, 5, 8), AttentionConfig{}), []string{"k and v", "same heads"}},
		{"nil", Attention(q, nil, k, AttentionConfig{}), []string{"k: the array is nil"}},
		{"scale", with(AttentionConfig{Scale: nan}), []string{"scale is NaN"}},
		{"soft-cap", with(AttentionConfig{SoftCap: -1}), []string{"SoftCap is -1"}},
		{"infinite soft-cap", with(AttentionConfig{SoftCap: float32(math.Inf(1))}), []string{"SoftCap is +Inf"}},
		{"window", with(AttentionConfig{Window: &Window{Left: -2}}), []string{"window", "Left:-2", "Unbounded"}},
		{"mask's shape", with(AttentionConfig{Mask: mlxc.Ones(mlxc.Float32, 3, 4)}), []string{"mask", "[3 4]", "[2 4 3 5]"}},
		{"mask's rank", with(AttentionConfig{Mask: mlxc.Ones(mlxc.Float32, 1, 1, 1, 3, 5)}), []string{"mask", "broadcast"}},
		{"mask's dtype", with(AttentionConfig{Mask: mlxc.Ones(mlxc.Int32, 3, 5)}), []string{"mask is int32", "AsType"}},
		{"freed mask", with(AttentionConfig{Mask: freed}), []string{"freed"}},
		{"sinks' shape", with(AttentionConfig{Sinks: mlxc.Ones(mlxc.Float32, 2)}), []string{"sinks", "4 elements"}},
		{"sinks' rank", with(AttentionConfig{Sinks: mlxc.Ones(mlxc.Float32, 4, 1)}), []string{"sinks", "one axis"}},
		{"sinks' dtype", with(AttentionConfig{Sinks: mlxc.Ones(mlxc.Int32, 4)}), []string{"sinks are int32"}},
		{"one list of starts", packed(starts(0, 3), nil), []string{"both or neither"}},
		{"batches of sequences", with(AttentionConfig{QueryStarts: starts(0, 3), KeyStarts: starts(0, 5)}), []string{"2 batches"}},
		{"dtype of starts", packed(starts(0, 3).AsType(mlxc.Uint32), starts(0, 5)), []string{"QueryStarts must be int32"}},
		{"too few starts", packed(starts(0, 3), starts(5)), []string{"KeyStarts", "two elements"}},
		{"rank of starts", packed(starts(0, 3).Reshape(1, 2), starts(0, 5)), []string{"QueryStarts", "one axis"}},
		{"first start", packed(starts(1, 3), starts(0, 5)), []string{"QueryStarts goes from 1 to 3", "from 0 to the length, 3"}},
		{"last start", packed(starts(0, 3), starts(0, 4)), []string{"KeyStarts goes from 0 to 4", "the length, 5"}},
		{"order of starts", packed(starts(0, 1, 3), starts(0, 6, 5)), []string{"KeyStarts", "goes back"}},
		{"numbers of sequences", packed(starts(0, 1, 3), starts(0, 5)), []string{"2 sequences and KeyStarts for 1"}},
		{"an error passes through", Attention(q.Add(mlxc.Ones(mlxc.Float32, 7)), k, k, AttentionConfig{}), []string{"add"}},
		{"rows of three axes", CausalAttention(q, k, k, 4, 2), []string{"CausalAttention", "[length, heads·head_dim]"}},
		{"rows and batches", CausalAttention(mlxc.Ones(mlxc.Float32, 3, 8), mlxc.Ones(mlxc.Float32, 1, 3, 8), mlxc.Ones(mlxc.Float32, 3, 8), 2, 2), []string{"q and k", "as many axes"}},
		{"rows of other heads", CausalAttention(mlxc.Ones(mlxc.Float32, 3, 8), mlxc.Ones(mlxc.Float32, 3, 8), mlxc.Ones(mlxc.Float32, 3, 8), 3, 3), []string{"q has rows of 8 elements", "3 heads"}},
		{"rows of no heads", CausalAttention(mlxc.Ones(mlxc.Float32, 3, 8), mlxc.Ones(mlxc.Float32, 3, 8), mlxc.Ones(mlxc.Float32, 3, 8), 2, 0), []string{"k is to have 0 heads"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mlxc.Eval(c.y)
			for _, p := range c.parts {
				require.ErrorContains(t, err, p)
			}
			if c.name != "an error passes through" && c.name != "freed mask" {
				require.ErrorContains(t, err, "Attention")
			}
			require.NoError(t, mlxc.Eval(Attention(q, k, k, AttentionConfig{})))
		})
	}
	out, lse := AttentionLogSumExp(q, k, q, AttentionConfig{})
	require.ErrorContains(t, out.Err(), "AttentionLogSumExp")
	require.Equal(t, out.Err(), lse.Err())
}

func TestAttentionWithoutACompiler(t *testing.T) {
	defer func() { warnOnce = sync.Once{} }()
	t.Setenv("CXX", "/nonexistent/compiler")
	for _, c := range someAttention(mlxc.Float16) {
		t.Run(c.name, func(t *testing.T) {
			outputs := c.function(attentionMLX)(c.args)
			cotangents := arrays{normal(7, mlxc.Float16, outputs[0].Shape()...), normal(8, mlxc.Float32, outputs[1].Shape()...)}
			want, wantGrads, err := mlxc.VJP(c.function(attentionMLX), c.args, cotangents)
			require.NoError(t, err)
			before := customkernels.LaunchCount()
			got, grads, err := mlxc.VJP(c.function(AttentionLogSumExp), c.args, cotangents)
			require.NoError(t, err)
			require.Equal(t, before, customkernels.LaunchCount())
			for i := range want {
				require.Equal(t, floats(t, want[i]), floats(t, got[i]))
			}
			for i := range wantGrads {
				require.Equal(t, floats(t, wantGrads[i]), floats(t, grads[i]))
			}
		})
	}
}

// MLX's own forward kernel is left to what it is made for.
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

// The gradient of a mask that is the same for all keys is the sum of what each key's element would get.
// Without a sink and a cotangent of lse it is 0.
func TestMaskGradientBroadcastAlongKeys(t *testing.T) {
	for _, dtype := range sampleDTypes(1) {
		for _, shape := range [][]int{{2, 2, 33, 1}, {33, 1}, {2, 1, 1}, {1}} {
			t.Run(fmt.Sprint(dtype, shape), func(t *testing.T) {
				q, k, v := normal(1, dtype, 2, 2, 33, 16), normal(2, dtype, 2, 2, 65, 16), normal(3, dtype, 2, 2, 65, 16)
				cotangents := arrays{normal(5, dtype, 2, 2, 33, 16), normal(6, mlxc.Float32, 2, 2, 33)}
				gradient := func(sinks *mlxc.Array, outputs int, prepare func(mask *mlxc.Array) *mlxc.Array) []float32 {
					f := func(args arrays) arrays {
						out, lse := AttentionLogSumExp(q, k, v, AttentionConfig{Mask: prepare(args[0]), Sinks: sinks, Window: &Window{9, 9}})
						return arrays{out, lse}[:outputs]
					}
					_, grads, err := mlxc.VJP(f, arrays{normal(4, dtype, shape...)}, cotangents[:outputs])
					require.NoError(t, err)
					return floats(t, grads[0])
				}
				asItIs := func(mask *mlxc.Array) *mlxc.Array { return mask }
				repeated := func(mask *mlxc.Array) *mlxc.Array { return mask.AsType(mlxc.Float32).BroadcastTo(2, 2, 33, 65) }
				for _, x := range gradient(nil, 1, asItIs) {
					require.Zero(t, x)
				}
				sinks := normal(7, dtype, 2)
				got, want := gradient(sinks, 2, asItIs), gradient(sinks, 2, repeated)
				for i := range want {
					require.InDelta(t, want[i], got[i], 0.02*max(1, math.Abs(float64(want[i]))))
				}
			})
		}
	}
}
