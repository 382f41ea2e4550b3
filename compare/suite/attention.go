package suite

import (
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/ops"
)

func attention() compare.Op {
	op := compare.Op{Name: "attention"}
	for _, c := range attentionCases() {
		op.Cases = append(op.Cases, c.build())
	}
	return op
}

// attentionCases covers lengths, head sizes and numbers of heads below, at and above the sizes of a tile and a
// simdgroup, then single properties, then combinations.
func attentionCases() []attentionCase {
	return slices.Concat(
		attentionLengths(), attentionHeads(), attentionWindows(), attentionMasks(), attentionOptions(),
		attentionSequences(), attentionLayouts(), attentionValues(), attentionEmpty())
}

// bothWays adds a causal copy of each case.
func bothWays(cases ...attentionCase) []attentionCase {
	for _, c := range slices.Clone(cases) {
		c.causal = true
		cases = append(cases, c)
	}
	return cases
}

// attentionLengths has larger batches for short lengths, because the largest error of few elements depends on chance.
func attentionLengths() []attentionCase {
	var cases []attentionCase
	for _, length := range []int{1, 2, 7, 31, 33, 127, 129} {
		cases = append(cases, attentionCase{batch: 1 + 400/(length+30), heads: 3, queries: length, dim: 16})
	}
	for _, length := range []int{129, 257} {
		cases = append(cases, attentionCase{batch: 1, heads: 1, queries: length, dim: 64})
	}
	cases = append(cases, attentionCase{batch: 3, heads: 2, queries: 37, dim: 24})
	for _, lengths := range [][2]int{
		{1, 2},
		{1, 33},
		{1, 1000},
		{2, 257},
		{7, 33},
		{33, 129},
		{127, 128},
		{2, 1},
		{33, 1},
		{33, 7},
		{129, 33},
		{257, 31}, // if causal, the first queries see no key
	} {
		cases = append(cases, attentionCase{batch: 2 + 400/(lengths[0]+30), heads: 2, queries: lengths[0], keys: lengths[1], dim: 16})
	}
	cases = bothWays(cases...)
	return append(cases, attentionCase{batch: 1, heads: 1, queries: 1000, dim: 64, causal: true},
		attentionCase{batch: 1, heads: 1, queries: 1000, dim: 40})
}

func attentionHeads() []attentionCase {
	var cases []attentionCase
	for _, heads := range [][2]int{{2, 1}, {3, 1}, {8, 1}, {6, 2}, {16, 2}} {
		cases = append(cases, attentionCase{batch: 2, heads: heads[0], kvHeads: heads[1], queries: 33, dim: 16},
			attentionCase{batch: 1, heads: heads[0], kvHeads: heads[1], queries: 17, keys: 70, dim: 40})
	}
	cases = append(cases, attentionCase{batch: 1, heads: 8, kvHeads: 1, queries: 129, dim: 32})
	for _, dim := range []int{1, 7, 8, 16, 33, 40, 64, 72, 80, 96, 100, 128, 192, 256} {
		cases = append(cases, attentionCase{batch: 1, heads: 2, queries: 40, keys: 67, dim: dim})
	}
	for _, dims := range [][2]int{{64, 32}, {32, 128}, {128, 64}, {192, 128}, {8, 256}, {16, 1}, {40, 72}} {
		cases = append(cases, attentionCase{batch: 1, heads: 2, queries: 35, keys: 65, dim: dims[0], valueDim: dims[1]})
	}
	return append(bothWays(cases...), attentionWidths()...)
}

// attentionWidths covers options of heads whose tiles differ between GPUs.
func attentionWidths() []attentionCase {
	var cases []attentionCase
	for _, dim := range []int{72, 80, 96, 192} {
		c := attentionCase{batch: 1, heads: 4, kvHeads: 2, queries: 70, dim: dim}
		c.mask, c.maskAxes = booleans, "ij"
		cases = append(cases, c)
		c.mask, c.maskAxes, c.causal, c.sinks, c.softCap, c.lse = noMask, "", true, true, true, true
		cases = append(cases, c)
		c.sinks, c.softCap, c.lse, c.queryStarts = false, false, false, []int{0, 5, 5, 70}
		cases = append(cases, c)
	}
	return cases
}

func attentionWindows() []attentionCase {
	var cases []attentionCase
	const none = ops.Unbounded
	for _, w := range []ops.Window{
		{Left: 0, Right: 0},
		{Left: 3, Right: 0},
		{Left: 0, Right: 5},
		{Left: 5, Right: none},
		{Left: none, Right: 2},
		{Left: 40, Right: 7},
		{Left: 31, Right: 31},
		{Left: 64, Right: 64},
		{Left: 200, Right: 200},
		{Left: none, Right: none},
	} {
		cases = append(cases, attentionCase{batch: 1, heads: 2, queries: 129, dim: 16, window: &w},
			attentionCase{batch: 1, heads: 2, kvHeads: 1, queries: 37, keys: 100, dim: 16, window: &w})
	}
	// The first queries see no key, and no query sees some keys.
	cases = append(cases, attentionCase{batch: 1, heads: 2, queries: 70, keys: 35, dim: 16, window: &ops.Window{Left: 2, Right: 1}})
	for _, w := range []ops.Window{{Left: 4, Right: 0}, {Left: 40, Right: 9}, {Left: none, Right: 3}} {
		cases = append(cases, attentionCase{batch: 1, heads: 2, queries: 129, dim: 16, window: &w, causal: true})
	}
	return cases
}

func attentionMasks() []attentionCase {
	var cases []attentionCase
	for _, axes := range []string{"11ij", "b11j", "h1j", "ij", "bhij", "hi1", "j"} {
		c := attentionCase{batch: 2, heads: 4, kvHeads: 2, queries: 33, keys: 129, dim: 16, maskAxes: axes}
		// A constant added to a whole row changes only the log-sum-exp.
		c.lse = axes == "hi1"
		for _, kind := range []maskKind{booleans, added} {
			c.mask = kind
			cases = append(cases, bothWays(c)...)
		}
		if axes == "hi1" {
			continue // about every fourth row would see no key
		}
		c.mask, c.maskValues, c.label = added, sometimes(compare.Normal(1), []float64{math.Inf(-1)}), "-inf"
		cases = append(cases, c)
	}
	// A mask broadcast along the keys changes no weight. Its gradient is 0 except for rounding.
	for _, axes := range []string{"bhi1", "hi1", "i1", "h11", "b111"} {
		c := attentionCase{batch: 2, heads: 4, kvHeads: 2, queries: 33, keys: 129, dim: 16, mask: added, maskAxes: axes}
		cases = append(cases, bothWays(c)...)
		c.softCap, c.window = true, &ops.Window{Left: 40, Right: 7}
		cases = append(cases, c)
	}
	for _, c := range []attentionCase{
		{mask: booleans, maskValues: hiddenRows(1, 0), label: "rows hidden"},
		{mask: added, maskValues: hiddenRows(0.5, math.Inf(-1)), label: "rows hidden"},
		{mask: booleans, maskValues: compare.Zeros, label: "all hidden"},
	} {
		c.batch, c.heads, c.queries, c.keys, c.dim, c.maskAxes = 1, 2, 67, 40, 16, "ij"
		cases = append(cases, c)
	}
	for _, kind := range []maskKind{booleans, added} {
		cases = append(cases, attentionCase{batch: 1, heads: 2, kvHeads: 1, queries: 40, keys: 67, dim: 256, mask: kind, maskAxes: "ij"})
	}
	cases = append(cases, attentionCase{batch: 1, heads: 1, queries: 200, dim: 64, mask: booleans, maskAxes: "11ij"},
		attentionCase{batch: 1, heads: 1, queries: 200, dim: 64, mask: added, maskAxes: "11ij", causal: true})
	return cases
}

// attentionOptions covers sinks, the soft cap and the log-sum-exp, alone and combined. Cases with sinks have many
// heads, so that there are enough sinks.
func attentionOptions() []attentionCase {
	var cases []attentionCase
	for _, length := range []int{1, 33, 67} {
		c := attentionCase{batch: 1, heads: 8, kvHeads: 2, queries: length, keys: 67, dim: 16}
		c.sinks = true
		cases = append(cases, bothWays(c)...)
		c.sinks, c.softCap = false, true
		cases = append(cases, bothWays(c)...)
		c.softCap, c.lse = false, true
		cases = append(cases, bothWays(c)...)
	}
	for bits := range 8 {
		c := attentionCase{
			batch: 3, heads: 16, kvHeads: 8, queries: 9, keys: 13, dim: 8,
			sinks: bits&1 != 0, softCap: bits&2 != 0, lse: bits&4 != 0,
		}
		cases = append(cases, bothWays(c)...)
		c.mask, c.maskAxes = booleans, "ij"
		cases = append(cases, c)
		c.mask, c.maskAxes = added, "h1j"
		cases = append(cases, c)
		c.mask, c.window = noMask, &ops.Window{Left: 4, Right: 2}
		cases = append(cases, c)
	}
	// A row without keys still has its sink.
	cases = append(cases, attentionCase{batch: 1, heads: 16, queries: 20, keys: 9, dim: 8, causal: true, sinks: true, lse: true})
	for _, scale := range []float32{0.1, -0.5} {
		cases = append(cases, attentionCase{batch: 1, heads: 2, queries: 33, dim: 16, scale: scale})
	}
	return cases
}

func attentionSequences() []attentionCase {
	var cases []attentionCase
	for _, c := range []attentionCase{
		{queryStarts: []int{0, 70}},
		{queryStarts: []int{0, 33, 70}},
		{queryStarts: []int{0, 1, 3, 10, 41, 70}},
		{queryStarts: []int{0, 5, 5, 70}, label: "empty"},
		{queryStarts: []int{0, 0, 32, 64, 64}, label: "ends empty"},
		{queryStarts: []int{0, 3, 20, 40}, keyStarts: []int{0, 17, 18, 70}},
		{queryStarts: []int{0, 3, 20, 40}, keyStarts: []int{0, 30, 30, 70}, label: "no k"},
		{queryStarts: []int{0, 20, 20, 40}, keyStarts: []int{0, 30, 41, 70}, label: "no q"},
	} {
		c.batch, c.heads, c.kvHeads, c.dim = 1, 4, 2, 16
		cases = append(cases, bothWays(c)...)
	}
	c := attentionCase{batch: 1, heads: 8, kvHeads: 2, dim: 16, queryStarts: []int{0, 12, 12, 50}, label: "empty"}
	c.window = &ops.Window{Left: 3, Right: 1}
	cases = append(cases, c)
	c.window, c.label, c.sinks, c.softCap, c.lse = nil, "", true, true, true
	cases = append(cases, c)
	c.causal, c.softCap = true, false
	cases = append(cases, c)
	c = attentionCase{batch: 1, heads: 4, dim: 16, queryStarts: []int{0, 12, 50}, mask: booleans, maskAxes: "ij"}
	cases = append(cases, c)
	c.mask, c.causal = added, true
	return append(cases, c)
}

func attentionLayouts() []attentionCase {
	var cases []attentionCase
	for _, layout := range append(everyLayout(), compare.Interleaved) {
		c := attentionCase{batch: 2, heads: 2, queries: 33, dim: 16, causal: true}
		for _, operand := range []string{"q", "k", "v", "dout"} {
			if operand == "k" && layout == compare.Broadcast {
				continue // in the cases with v below
			}
			c.layouts = layouts{operand: layout}
			cases = append(cases, c)
		}
		c.layouts = layouts{"k": layout, "v": layout}
		cases = append(cases, c)
		c.causal = false
		c.layouts = layouts{"q": layout, "k": layout, "v": layout, "dout": layout}
		cases = append(cases, c)
		c.layouts, c.mask, c.maskAxes = layouts{"mask": layout}, booleans, "bhij"
		cases = append(cases, c)
		c.mask = added
		cases = append(cases, c)
	}
	cases = append(
		cases,
		attentionCase{batch: 1, heads: 16, queries: 17, dim: 8, sinks: true, layouts: layouts{"sink": compare.Strided}},
		attentionCase{batch: 1, heads: 8, queries: 17, dim: 8, lse: true, layouts: layouts{"dlse": compare.Transposed}},
	)
	return cases
}

func attentionValues() []attentionCase {
	var cases []attentionCase
	for _, c := range []attentionCase{
		{values: compare.EqualRows, label: "equal rows"},
		{values: compare.Normal(1e-3), label: "tiny"},
		{values: compare.Spike, label: "spike"},
		// With a deviation of 25 some scores exceed 80.
		{values: compare.Normal(5), keyValues: compare.Normal(5), label: "large scores"},
		{values: compare.Normal(5), keyValues: compare.Normal(5), softCap: true, label: "large scores"},
	} {
		c.batch, c.heads, c.queries, c.dim = 1, 2, 67, 16
		cases = append(cases, bothWays(c)...)
	}
	for _, caps := range []float64{3, 5, 8} {
		c := attentionCase{batch: 1, heads: 2, kvHeads: 1, queries: 33, keys: 67, dim: 16, caps: caps}
		if caps < 8 { // at 8 caps MLX's float16 gradient is 0, and rounding of delta dominates ours
			cases = append(cases, bothWays(c)...)
		}
		c.mask, c.maskAxes, c.sinks, c.lse = added, "ij", true, true
		cases = append(cases, c)
	}
	return append(cases,
		attentionCase{batch: 1, heads: 2, queries: 67, dim: 16, values: compare.NormalExcept(math.NaN()), label: "one NaN"},
		// If all keys are equal, the true dq is 0 and a computed dq is only rounding.
		attentionCase{batch: 1, heads: 2, queries: 67, dim: 16, keyValues: alike, frozen: true, label: "keys alike"})
}

func attentionEmpty() []attentionCase {
	return []attentionCase{
		{batch: 0, heads: 2, queries: 3, dim: 8},
		{batch: 2, heads: 2, queries: 0, keys: 5, dim: 8, causal: true},
		{batch: 2, heads: 2, queries: 16, keys: 0, noKeys: true, dim: 8},
		{batch: 1, heads: 2, queries: 32, noKeys: true, dim: 8, lse: true},
	}
}
