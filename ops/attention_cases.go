package ops

import (
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// An attentionLaunch holds the sizes and options of a case in which the kernels are checked.
type attentionLaunch struct {
	name      string
	shape     [7]int // batch, heads, kvHeads, queries, keys, head_dim, valueDim
	cfg       AttentionConfig
	mask      []int // shape of the mask; nil for none
	maskDType mlxc.DType
	few       bool // few elements of a boolean mask are true, so most tiles are hidden
	sinks     bool
	starts    [2][]int32 // QueryStarts and KeyStarts
	onlyOut   bool       // lse has no cotangent
}

// attentionShapes returns the cases in which the kernels are checked.
//
// The ragged cases have:
//   - single elements
//   - lengths that do not fill their last tile, with several threadgroups
//   - query heads that share a key head, and heads so wide that pairs of simdgroups share rows
//   - keys that no query sees, and queries that see no key
//   - every kind of mask, broadcast along every axis
//   - packed sequences, one of them empty
//   - queries that give no key much of their weight
func attentionShapes(set CaseSet) []attentionLaunch {
	switch set {
	case WarpgroupCases:
		return warpgroupShapes
	case TypicalCases:
		return []attentionLaunch{
			{name: "causal", shape: [7]int{1, 4, 2, 256, 256, 64, 64}, cfg: AttentionConfig{Causal: true}},
			{name: "mask", shape: [7]int{1, 4, 2, 256, 256, 64, 64}, mask: []int{256, 256}, maskDType: mlxc.Float32},
			{name: "booleans", shape: [7]int{1, 4, 2, 256, 256, 64, 64}, mask: []int{256, 256}, maskDType: mlxc.Bool},
		}
	}
	const additive = mlxc.Float32
	return []attentionLaunch{
		{name: "more queries", shape: [7]int{1, 1, 1, 133, 70, 8, 8}, cfg: AttentionConfig{Causal: true}},
		{
			name: "window", shape: [7]int{1, 2, 1, 70, 70, 8, 8},
			cfg: AttentionConfig{Window: &Window{Left: 1, Right: 1}}, sinks: true,
		},
		{name: "booleans", shape: [7]int{2, 2, 2, 33, 65, 8, 8}, mask: []int{2, 1, 33, 65}, maskDType: mlxc.Bool},
		{name: "booleans in packs", shape: [7]int{1, 2, 1, 50, 80, 8, 8}, mask: []int{2, 50, 80}, maskDType: mlxc.Bool},
		{
			name: "few booleans", shape: [7]int{1, 2, 1, 50, 64, 8, 8},
			mask: []int{50, 64}, maskDType: mlxc.Bool, few: true,
		},
		{
			name: "packed", shape: [7]int{1, 2, 1, 75, 47, 8, 8}, cfg: AttentionConfig{Causal: true},
			starts: [2][]int32{{0, 5, 5, 73, 75}, {0, 9, 12, 47, 47}},
		},
		{
			name: "mask, soft-cap", shape: [7]int{1, 2, 2, 33, 71, 8, 16},
			cfg:  AttentionConfig{SoftCap: 0.75, Causal: true, Window: &Window{Left: 18, Right: Unbounded}},
			mask: []int{33, 71}, maskDType: additive, sinks: true,
		},
		{
			name: "mask, packed", shape: [7]int{1, 2, 2, 37, 35, 8, 16}, cfg: AttentionConfig{Causal: true},
			mask: []int{2, 37, 35}, maskDType: additive, starts: [2][]int32{{0, 5, 5, 36, 37}, {0, 9, 12, 15, 35}},
		},
		{name: "mask of keys", shape: [7]int{2, 2, 1, 9, 35, 8, 16}, mask: []int{2, 1, 1, 35}, maskDType: additive},
		{name: "mask of queries", shape: [7]int{2, 2, 1, 19, 9, 8, 16}, mask: []int{2, 19, 1}, maskDType: additive},
		{name: "mask of odd keys", shape: [7]int{2, 2, 1, 9, 35, 8, 16}, mask: []int{1, 35}, maskDType: additive},
		{name: "mask of heads", shape: [7]int{2, 2, 1, 9, 35, 8, 16}, mask: []int{2, 1, 1}, maskDType: additive},
		// The widest heads that fit 32 KiB of threadgroup memory.
		{name: "wide heads", shape: [7]int{1, 2, 1, 19, 35, 240, 128}, cfg: AttentionConfig{Causal: true}},
		{
			name: "wide heads, mask", shape: [7]int{1, 2, 1, 5, 7, 256, 144},
			mask: []int{5, 7}, maskDType: additive, sinks: true,
		},
		{name: "plain", shape: [7]int{1, 1, 1, 1, 1, 8, 8}},
		{name: "only out", shape: [7]int{1, 2, 1, 19, 35, 8, 8}, onlyOut: true},
		// Float32 gradients take one pass on a CPU, because no key has much of a query's weight.
		{name: "small weights", shape: [7]int{1, 1, 1, 9, 300, 8, 8}},
		{name: "small weights, soft-cap", shape: [7]int{1, 2, 1, 19, 71, 8, 16}, cfg: AttentionConfig{SoftCap: 0.75}},
		{name: "causal", shape: [7]int{2, 6, 2, 19, 41, 64, 24}, cfg: AttentionConfig{Causal: true}},
	}
}

// warpgroupShapes are the shapes of WarpgroupCases: every head width that warpgroups support, and every option but an
// added mask.
var warpgroupShapes = []attentionLaunch{
	{name: "full", shape: [7]int{1, 2, 1, 256, 256, 64, 64}},
	{name: "ragged", shape: [7]int{2, 2, 2, 133, 70, 128, 128}, sinks: true},
	{name: "causal", shape: [7]int{1, 2, 1, 256, 256, 128, 128}, cfg: AttentionConfig{Causal: true}},
	{name: "causal, narrow", shape: [7]int{1, 2, 1, 256, 256, 64, 64}, cfg: AttentionConfig{Causal: true}},
	{name: "wide values", shape: [7]int{1, 2, 1, 133, 70, 64, 128}, cfg: AttentionConfig{Causal: true}},
	{name: "narrow values", shape: [7]int{1, 2, 1, 133, 70, 128, 64}, cfg: AttentionConfig{SoftCap: 0.75}},
	{
		name: "window, soft-cap", shape: [7]int{1, 2, 2, 133, 171, 128, 128},
		cfg: AttentionConfig{SoftCap: 0.75, Causal: true, Window: &Window{Left: 18, Right: Unbounded}}, sinks: true,
	},
	{
		name: "packed", shape: [7]int{1, 2, 1, 75, 47, 64, 64}, cfg: AttentionConfig{Causal: true},
		starts: [2][]int32{{0, 5, 5, 73, 75}, {0, 9, 12, 47, 47}},
	},
	{name: "wide heads", shape: [7]int{1, 2, 1, 133, 171, 256, 256}, cfg: AttentionConfig{Causal: true}, sinks: true},
	{name: "wide heads, mask", shape: [7]int{1, 2, 2, 70, 133, 128, 256}, mask: []int{70, 133}, maskDType: mlxc.Bool},
	{name: "mask", shape: [7]int{1, 2, 1, 133, 171, 128, 128}, mask: []int{133, 171}, maskDType: mlxc.Bool},
	{
		name: "mask, packed", shape: [7]int{1, 2, 1, 75, 47, 64, 64}, cfg: AttentionConfig{Causal: true},
		mask: []int{2, 75, 47}, maskDType: mlxc.Bool, starts: [2][]int32{{0, 5, 5, 73, 75}, {0, 9, 12, 47, 47}},
	},
	{name: "causal, 96", shape: [7]int{1, 2, 1, 133, 171, 96, 96}, cfg: AttentionConfig{Causal: true}, sinks: true},
	{name: "soft-cap, 80", shape: [7]int{1, 2, 1, 133, 70, 80, 80}, cfg: AttentionConfig{SoftCap: 0.75}},
	{name: "mask, 72", shape: [7]int{1, 2, 2, 70, 133, 72, 72}, mask: []int{70, 133}, maskDType: mlxc.Bool},
	{
		name: "packed, 192", shape: [7]int{1, 2, 1, 75, 47, 192, 128}, cfg: AttentionConfig{Causal: true},
		starts: [2][]int32{{0, 5, 5, 73, 75}, {0, 9, 12, 47, 47}},
	},
	{name: "causal, 192", shape: [7]int{1, 2, 1, 133, 171, 192, 192}, cfg: AttentionConfig{Causal: true}},
	{name: "full, 72", shape: [7]int{1, 2, 1, 133, 171, 72, 72}},
	{name: "causal, 80", shape: [7]int{1, 2, 1, 133, 171, 80, 80}, cfg: AttentionConfig{Causal: true}},
}

func attentionCases(set CaseSet) []launchCase {
	var cases []launchCase
	for _, c := range attentionShapes(set) {
		cases = append(cases, launchCase{
			name: fmt.Sprintf("%s, %v", c.name, c.shape),
			run:  c.run,
		})
	}
	return cases
}

func (c attentionLaunch) run(on target, dtype mlxc.DType) {
	in, cfg := c.inputs(dtype)
	out, statistics := attentionForward(on, in, cfg)
	rows := in.q.Shape()[:3:3]
	dOut, dLSE := normalOf(6, dtype, append(rows, in.v.Dim(3))...), normalOf(7, mlxc.Float32, rows...)
	if c.onlyOut {
		dLSE = nil
	}
	attentionBackward(on, in, out, statistics, dOut, dLSE, cfg)
}

func normalOf(seed uint64, dtype mlxc.DType, shape ...int) *mlxc.Array {
	return mlxc.RandomNormal(mlxc.RandomKey(seed), dtype, shape...)
}

// inputs returns random inputs, the same in every call, and the configuration with its scale.
func (c attentionLaunch) inputs(dtype mlxc.DType) (attentionInputs, AttentionConfig) {
	batches, heads, keyHeads, queries, keys := c.shape[0], c.shape[1], c.shape[2], c.shape[3], c.shape[4]
	width, valueWidth := c.shape[5], c.shape[6]
	in := attentionInputs{
		q: normalOf(1, dtype, batches, heads, queries, width),
		k: normalOf(2, dtype, batches, keyHeads, keys, width),
		v: normalOf(3, dtype, batches, keyHeads, keys, valueWidth),
	}
	switch {
	case c.mask == nil:
	case c.maskDType == mlxc.Bool:
		least := float32(0)
		if c.few {
			least = 3
		}
		in.mask = normalOf(4, mlxc.Float32, c.mask...).Greater(mlxc.Scalar(least))
	default:
		in.mask = normalOf(4, c.maskDType, c.mask...)
	}
	if c.sinks {
		in.sinks = normalOf(5, dtype, heads)
	}
	if starts := c.starts; starts[0] != nil {
		in.queryStarts = mlxc.FromSlice(starts[0], len(starts[0]))
		in.keyStarts = mlxc.FromSlice(starts[1], len(starts[1]))
	}
	cfg := c.cfg
	cfg.Scale = float32(1 / math.Sqrt(float64(width)))
	return in, cfg
}
