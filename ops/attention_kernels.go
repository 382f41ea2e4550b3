package ops

import (
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var (
	attentionForwardFile   = newShaderFile("attention_forward.metal")
	attentionBackwardFile  = newShaderFile("attention_backward.metal")
	attentionGradientsFile = newShaderFile("attention_gradients.metal")
	attentionMaskFile      = newShaderFile("attention_mask.metal")
)

// attentionInputs holds the arrays of an attention. mask, sinks and the pair of starts may be nil.
type attentionInputs struct {
	q, k, v, mask, sinks   *mlxc.Array
	queryStarts, keyStarts *mlxc.Array
}

func (in attentionInputs) list() []*mlxc.Array {
	return []*mlxc.Array{in.q, in.k, in.v, in.mask, in.sinks, in.queryStarts, in.keyStarts}
}

func attentionInputsFrom(list []*mlxc.Array) attentionInputs {
	return attentionInputs{list[0], list[1], list[2], list[3], list[4], list[5], list[6]}
}

// maskShape returns the mask's shape, extended to four axes, or zeros without a mask.
func (in attentionInputs) maskShape() [4]int {
	if in.mask == nil {
		return [4]int{}
	}
	shape := [4]int{1, 1, 1, 1}
	copy(shape[4-in.mask.NDim():], in.mask.Shape())
	return shape
}

// A maskKind tells what a mask does to the scores.
type maskKind int

const (
	noMask      maskKind = iota
	booleanMask          // hides keys
	addedMask            // is added, and therefore has a gradient
)

func (in attentionInputs) kindOfMask() maskKind {
	switch {
	case in.mask == nil:
		return noMask
	case in.mask.DType() == mlxc.Bool:
		return booleanMask
	}
	return addedMask
}

// attentionArgs holds the inputs as arguments of the kernels. Inputs that are nil are replaced by placeholders that the
// kernels do not read.
type attentionArgs struct {
	attentionInputs
	keyMask        *mlxc.Array // the mask for attention_dkv; the other kernels read mask
	sequences      int         // 0 without packed sequences
	capped         bool
	maskKind       maskKind
	sizes, scalars *mlxc.Array // struct Sizes of the shaders; the scale and the soft cap
}

// bind returns the inputs and options as arguments of the kernels. The caller's scope owns the arrays that it makes.
func (in attentionInputs) bind(on target, cfg AttentionConfig) attentionArgs {
	a := attentionArgs{attentionInputs: in, capped: cfg.SoftCap > 0, maskKind: in.kindOfMask()}
	// Placeholders and scalars have eight elements: MLX passes shorter inputs in the constant address space.
	if in.mask == nil {
		a.mask = mlxc.Zeros(mlxc.Bool, 8)
	}
	if in.queryStarts == nil {
		a.queryStarts = mlxc.Zeros(mlxc.Int32, 8)
		a.keyStarts = a.queryStarts
	} else {
		a.sequences = in.queryStarts.Dim(0) - 1
	}
	left, right := math.MaxInt32/4, math.MaxInt32/4 // no limit, and sums with positions fit an int32
	if w := cfg.Window; w != nil {
		if w.Left != Unbounded {
			left = min(left, w.Left)
		}
		if w.Right != Unbounded {
			right = min(right, w.Right)
		}
	}
	if cfg.Causal {
		right = 0
	}
	mask := in.maskShape()
	a.sizes = customkernels.Constants(
		int32(in.q.Dim(1)), int32(in.k.Dim(1)), int32(in.q.Dim(2)), int32(in.k.Dim(2)),
		int32(left), int32(right), int32(a.sequences),
		int32(mask[0]), int32(mask[1]), int32(mask[2]), int32(mask[3]), int32(in.q.Dim(0)))
	a.scalars = customkernels.Constants(cfg.Scale, cfg.SoftCap, 0, 0, 0, 0, 0, 0)
	a.keyMask = a.mask
	if lanes := attentionTuning[on.backend].lanes; lanes > 1 && a.maskKind == booleanMask {
		a.mask, a.keyMask = a.maskBits(on, mask, lanes)
	}
	return a
}

// maskBits packs a boolean mask of this shape into words of `lanes` bits: [batches, heads, queries, words of keys] and
// [batches, heads, keys, words of queries].
func (a attentionArgs) maskBits(on target, shape [4]int, lanes int) (byQuery, byKey *mlxc.Array) {
	words := func(n int) int { return (n + lanes - 1) / lanes }
	batches, heads, queries, keys := shape[0], shape[1], shape[2], shape[3]
	results := on.launch(attentionMaskFile.kernel("attention_mask_bits"), customkernels.Launch{
		Grid:        [3]int{words(queries) * words(keys) * lanes, heads, batches},
		Threadgroup: [3]int{lanes, 1, 1},
		Template:    maskBitsTemplate{lanes}.args(),
		Outputs: []mlxc.Output{
			{Shape: []int{batches, heads, queries, words(keys)}, DType: mlxc.Uint32},
			{Shape: []int{batches, heads, keys, words(queries)}, DType: mlxc.Uint32},
		},
	}, a.mask, a.sizes)
	return results[0], results[1]
}

// attentionTemplate holds the template arguments that most attention kernels share. attention.h explains them.
type attentionTemplate struct {
	dtype, mask            mlxc.DType
	capped, masked, paired bool
	lanes, simdgroups      int
	blockM, blockN         int
	headDim, valueDim      int
}

func (t attentionTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{
		{Name: "T", Value: t.dtype},
		{Name: "MASK_T", Value: t.mask},
		{Name: "CAPPED", Value: t.capped},
		{Name: "MASKED", Value: t.masked},
		{Name: "PAIRED", Value: t.paired},
		{Name: "LANES", Value: t.lanes},
		{Name: "SIMDGROUPS", Value: t.simdgroups},
		{Name: "BLOCK_M", Value: t.blockM},
		{Name: "BLOCK_N", Value: t.blockN},
		{Name: "HEAD_DIM", Value: t.headDim},
		{Name: "VALUE_DIM", Value: t.valueDim},
	}
}

// maskBitsTemplate holds the template arguments of attention_mask_bits.
type maskBitsTemplate struct{ lanes int }

func (t maskBitsTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{{Name: "LANES", Value: t.lanes}}
}

// outputDeltaTemplate holds the template arguments of attention_delta_of_output.
type outputDeltaTemplate struct {
	dtype                   mlxc.DType
	lanes, blockM, valueDim int
	hasDLSE                 bool
}

func (t outputDeltaTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{
		{Name: "T", Value: t.dtype},
		{Name: "LANES", Value: t.lanes},
		{Name: "BLOCK_M", Value: t.blockM},
		{Name: "VALUE_DIM", Value: t.valueDim},
		{Name: "HAS_DLSE", Value: t.hasDLSE},
	}
}

// launch describes the launch of a kernel whose simdgroups own rows, `length` in each of `heads` heads.
func (a attentionArgs) launch(g attentionGeometry, length, heads int) customkernels.Launch {
	return customkernels.Launch{
		Grid:        [3]int{g.groups(length, a.sequences) * g.threads(), heads, a.q.Dim(0)},
		Threadgroup: [3]int{g.threads(), 1, 1},

		ThreadgroupMemory: g.memory,
		MinGroupsPerCore:  g.groupsPerCore,
		// Without a test in each copy, the compiler takes more registers for floats or a cap, and spills some.
		AlignedInputs: g.lanes == warpgroupLanes && a.q.DType().Size() == 2 && !a.capped,
		Template: attentionTemplate{
			dtype: a.q.DType(), mask: a.mask.DType(),
			capped: a.capped, masked: a.maskKind != noMask, paired: g.paired,
			lanes: g.lanes, simdgroups: g.simdgroups, blockM: g.blockM, blockN: g.blockN,
			headDim: a.q.Dim(3), valueDim: a.v.Dim(3),
		}.args(),
	}
}

// geometry returns the launch geometry of a kernel with this footprint for `length` rows.
func (a attentionArgs) geometry(on target, length int, footprint rowFootprint) attentionGeometry {
	return attentionGeometryFor(on, a.q.DType(), a.q.Dim(3), a.v.Dim(3), length, footprint, a.maskKind)
}

// attentionForward returns out and the statistics m and l of each row, [batch, heads, queries, 2]: m is close to the
// largest score, and l = exp(lse − m). Without a key and a sink, both are 0.
func attentionForward(on target, in attentionInputs, cfg AttentionConfig) (out, statistics *mlxc.Array) {
	results := scoped(func() []*mlxc.Array {
		a := in.bind(on, cfg)
		rows, heads, queries := in.q.Shape()[:3], in.q.Dim(1), in.q.Dim(2)
		headDim, valueDim := in.q.Dim(3), in.v.Dim(3)
		g := a.geometry(on, queries, rowFootprint{inputs: headDim, accumulators: valueDim, capped: a.capped})
		if g.groupsPerCore == 0 {
			g.groupsPerCore = forwardGroupsPerCore(on.backend, in.q.DType(), max(headDim, valueDim))
		}
		l := a.launch(g, queries, heads)
		l.Outputs = []mlxc.Output{
			{Shape: append(rows[:3:3], valueDim), DType: in.q.DType()},
			{Shape: append(rows[:3:3], 2), DType: mlxc.Float32},
		}
		return on.launch(attentionForwardFile.kernel("attention_forward"), l,
			a.q, a.k, a.v, a.mask, in.sinksOrInf(), a.queryStarts, a.keyStarts, a.sizes, a.scalars)
	})
	return results[0], results[1]
}

// logSumExp returns lse of each row, [batch, heads, queries], from m and l.
func logSumExp(statistics *mlxc.Array) *mlxc.Array {
	return scoped(func() []*mlxc.Array {
		parts := statistics.Split(2, -1)
		return []*mlxc.Array{parts[0].Add(parts[1].Log()).Squeeze(-1)}
	})[0]
}

// attentionBackward returns the gradients of in.list(), with nil for an input that is nil. Inputs without a gradient
// get zeros. dLSE is the cotangent of lse, or nil for zeros.
func attentionBackward(
	on target, in attentionInputs, out, statistics, dOut, dLSE *mlxc.Array, cfg AttentionConfig,
) []*mlxc.Array {
	grads := make([]*mlxc.Array, len(in.list()))
	mlxc.WithScope(func() {
		a := in.bind(on, cfg)
		dOut := dOut.AsType(in.q.DType())
		var stats *mlxc.Array
		if attentionTuning[on.backend].lanes == 1 {
			results := a.statsAndGradQKV(on, out, statistics, dOut, dLSE)
			stats = results[0]
			copy(grads, results[1:])
		} else {
			stats = a.rowStats(on, out, statistics, dOut, dLSE)
			copy(grads, a.gradQKV(on, stats, dOut))
		}
		switch {
		case a.maskKind != addedMask:
		case in.maskShape()[3] == 1:
			grads[3] = in.gradRowMask(statistics, stats, dLSE)
		default:
			grads[3] = a.gradMask(on, stats, dOut)
		}
		if in.sinks != nil {
			grads[4] = in.sinkWeight(statistics).Mul(deltas(stats)).Sum(0, 2).Neg().AsType(in.sinks.DType())
		}
		for _, g := range grads {
			if g != nil {
				g.Keep()
			}
		}
	})
	for i, x := range in.list() {
		if x != nil && grads[i] == nil {
			grads[i] = zerosLike(x)[0]
		}
	}
	return grads
}

func outputLike(x *mlxc.Array) mlxc.Output { return mlxc.Output{Shape: x.Shape(), DType: x.DType()} }

// floats returns a float32 output.
func floats(shape ...int) mlxc.Output { return mlxc.Output{Shape: shape, DType: mlxc.Float32} }

// backwardInputs returns the inputs of the kernels that read RowStats.
func (a attentionArgs) backwardInputs(stats, dOut *mlxc.Array) []*mlxc.Array {
	return []*mlxc.Array{a.q, a.k, a.v, a.mask, dOut, stats, a.queryStarts, a.keyStarts, a.sizes, a.scalars}
}

// gradQKV returns dq, dk and dv. The kernels recompute the weights P tile by tile.
func (a attentionArgs) gradQKV(on target, stats, dOut *mlxc.Array) []*mlxc.Array {
	headDim, both := a.q.Dim(3), a.q.Dim(3)+a.v.Dim(3)
	queries, keys := a.q.Dim(2), a.k.Dim(2)
	footprint := rowFootprint{inputs: both, accumulators: headDim, valueProducts: true, capped: a.capped}
	forQ := a.launch(a.geometry(on, queries, footprint), queries, a.q.Dim(1))
	forQ.Outputs = []mlxc.Output{outputLike(a.q)}
	footprint.accumulators, footprint.storedInputs = both, true
	forKV := a.launch(a.geometry(on, keys, footprint), keys, a.k.Dim(1))
	forKV.Outputs = []mlxc.Output{outputLike(a.k), outputLike(a.v)}
	inputs := a.backwardInputs(stats, dOut)
	grads := on.launch(attentionBackwardFile.kernel("attention_dq"), forQ, inputs...)
	inputs[3] = a.keyMask
	return append(grads, on.launch(attentionBackwardFile.kernel("attention_dkv"), forKV, inputs...)...)
}

// statsAndGradQKV returns the RowStats, dq, dk and dv from one kernel, whose threadgroups have parts of dk and dv.
func (a attentionArgs) statsAndGradQKV(on target, out, statistics, dOut, dLSE *mlxc.Array) []*mlxc.Array {
	isExact := a.needsExactDelta(on)
	queries, keys, batches, keyHeads := a.q.Dim(2), a.k.Dim(2), a.k.Dim(0), a.k.Dim(1)
	g := a.geometry(on, queries, rowFootprint{})
	blocks := g.groups(queries, a.sequences)
	parts := keyParts(batches*keyHeads, blocks*(a.q.Dim(1)/keyHeads))
	l := a.launch(g, queries, keyHeads)
	l.Grid[0] = parts
	l.Template = append(slices.DeleteFunc(l.Template, func(t mlxc.TemplateArg) bool {
		return t.Name == "PAIRED" || t.Name == "LANES" || t.Name == "SIMDGROUPS"
	}), mlxc.TemplateArg{Name: "HAS_DLSE", Value: dLSE != nil}, mlxc.TemplateArg{Name: "EXACT_DELTA", Value: isExact})
	tiles := 0 // in the memory of a threadgroup, for each panel of keys
	switch {
	case isExact && a.capped:
		tiles = 3
	case isExact:
		tiles = 2
	}
	l.Outputs = append(rowStatsOutput(dOut), outputLike(a.q), floats(parts, a.k.Size()), floats(parts, a.v.Size()),
		floats(parts*batches*keyHeads, ceilDiv(keys, g.blockN), tiles, g.blockN, g.blockM))
	if isExact {
		l.Undefined = []string{"memory"} // tiles of panels that no query sees
	}
	results := on.launch(attentionGradientsFile.kernel("attention_gradients"), l, a.q, a.k, a.v, a.mask, out, dOut, statistics,
		orPlaceholder(dLSE), a.queryStarts, a.keyStarts, a.sizes, a.scalars, uint32Arg(blocks))
	for i, x := range []*mlxc.Array{a.k, a.v} {
		grad := results[2+i]
		if parts > 1 || x.DType() != mlxc.Float32 {
			grad = columnSum(on, grad, x.DType())[0]
		}
		results[2+i] = grad.Reshape(x.Shape()...)
	}
	return results[:4]
}

// gradMask returns the gradient of a mask whose last axis has one element per key.
func (a attentionArgs) gradMask(on target, stats, dOut *mlxc.Array) *mlxc.Array {
	g := a.geometry(on, a.q.Dim(2), rowFootprint{})
	g.simdgroups = 1
	mask := a.maskShape()
	l := a.launch(g, 0, 0)
	l.Template = slices.DeleteFunc(l.Template, func(t mlxc.TemplateArg) bool { return t.Name == "PAIRED" })
	l.Grid = [3]int{
		(mask[3] + g.blockN - 1) / g.blockN * g.threads(), (mask[2] + g.blockM - 1) / g.blockM, mask[0] * mask[1],
	}
	l.Outputs = []mlxc.Output{{Shape: a.mask.Shape(), DType: a.mask.DType()}}
	return on.launch(attentionMaskFile.kernel("attention_dmask"), l, a.backwardInputs(stats, dOut)...)[0]
}

// The kernels' struct RowStats has rowStatsSize floats. Its element deltaIndex is delta.
const (
	rowStatsSize = 4
	deltaIndex   = 2
)

// rowStats returns the RowStats of each query, [batch, heads, queries, rowStatsSize].
func (a attentionArgs) rowStats(on target, out, statistics, dOut, dLSE *mlxc.Array) *mlxc.Array {
	if a.needsExactDelta(on) {
		return a.rowStatsOfProducts(on, statistics, dOut, dLSE)
	}
	return rowStatsOfOutput(on, out, statistics, dOut, dLSE)
}

// needsExactDelta reports whether a delta computed from the rounded output could make a gradient less accurate: the
// gradients of q, k and v if their products are exact, and the gradients of a float32 mask and of float32 sinks. On a
// CPU, attention_gradients uses it nevertheless for float32 queries whose probabilities are small.
func (a attentionArgs) needsExactDelta(on target) bool {
	isFloat32 := func(x *mlxc.Array) bool { return x != nil && x.DType() == mlxc.Float32 }
	return hasExactProducts(on.backend, a.q.DType(), max(a.q.Dim(3), a.v.Dim(3))) ||
		isFloat32(a.mask) || isFloat32(a.sinks)
}

func rowStatsOutput(dOut *mlxc.Array) []mlxc.Output {
	return []mlxc.Output{{Shape: append(dOut.Shape()[:3], rowStatsSize), DType: mlxc.Float32}}
}

// rowStatsOfProducts computes delta as Σ P·(dout·vᵀ) − dlse.
func (a attentionArgs) rowStatsOfProducts(on target, statistics, dOut, dLSE *mlxc.Array) *mlxc.Array {
	queries := a.q.Dim(2)
	footprint := rowFootprint{inputs: a.q.Dim(3) + a.v.Dim(3), valueProducts: true}
	l := a.launch(a.geometry(on, queries, footprint), queries, a.q.Dim(1))
	l.Outputs = rowStatsOutput(dOut)
	l.Template = append(l.Template, mlxc.TemplateArg{Name: "HAS_DLSE", Value: dLSE != nil})
	return on.launch(attentionBackwardFile.kernel("attention_delta"), l,
		a.q, a.k, a.v, a.mask, dOut, statistics, orPlaceholder(dLSE), a.queryStarts, a.keyStarts, a.sizes, a.scalars)[0]
}

// rowStatsOfOutput computes delta as Σ dout·out − dlse, from the rounded output.
func rowStatsOfOutput(on target, out, statistics, dOut, dLSE *mlxc.Array) *mlxc.Array {
	t := attentionTuning[on.backend]
	valueDim := dOut.Dim(3)
	n := dOut.Size() / valueDim
	return on.launch(attentionBackwardFile.kernel("attention_delta_of_output"), customkernels.Launch{
		Grid:        [3]int{(n + t.minBlockM - 1) / t.minBlockM * t.lanes},
		Threadgroup: [3]int{t.lanes},
		Template: outputDeltaTemplate{
			dtype: out.DType(), lanes: t.lanes, blockM: t.minBlockM, valueDim: valueDim, hasDLSE: dLSE != nil,
		}.args(),
		Outputs: rowStatsOutput(dOut),
	}, out, dOut, statistics, orPlaceholder(dLSE), uint32Arg(n))[0]
}

// orPlaceholder returns dLSE, or an array that the kernels do not read.
func orPlaceholder(dLSE *mlxc.Array) *mlxc.Array {
	if dLSE == nil {
		return mlxc.Zeros(mlxc.Float32, 8) // eight elements, as in bind
	}
	return dLSE
}

// deltas returns delta of each row, which includes −dlse: [batch, heads, queries].
func deltas(stats *mlxc.Array) *mlxc.Array {
	return stats.Split(rowStatsSize, -1)[deltaIndex].Squeeze(-1)
}

// sinksOrInf returns the sinks as float32. Without sinks they are −∞.
func (in attentionInputs) sinksOrInf() *mlxc.Array {
	if in.sinks == nil {
		return mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(math.Inf(-1))), in.q.Dim(1))
	}
	return in.sinks.AsType(mlxc.Float32)
}

// sinkWeight returns the weight of each row's sink, exp(sink − lse). l is at least 1, or 0 if the row sees no key and
// its sink is −∞; dividing by at least 1 makes that weight 0 instead of NaN.
func (in attentionInputs) sinkWeight(statistics *mlxc.Array) *mlxc.Array {
	parts := statistics.Split(2, -1)
	m, l := parts[0].Squeeze(-1), parts[1].Squeeze(-1)
	return in.sinksOrInf().Reshape(-1, 1).Sub(m).Exp().Div(l.Maximum(mlxc.Scalar[float32](1)))
}

// gradRowMask returns the gradient of a mask with one element for all keys of a row. Let w be the weight of the sink
// and delta = Σ dout·out, without dlse. The weights P of the keys sum to 1 − w, and P·(dout·vᵀ) sums to delta. So the
// gradients of the row's scores, P·(dout·vᵀ − delta + dlse), sum to
//
//	delta − (delta − dlse)·(1 − w) = (delta − dlse)·w + dlse,
//
// which is 0 if there is neither a sink nor a cotangent of lse.
func (in attentionInputs) gradRowMask(statistics, stats, dLSE *mlxc.Array) *mlxc.Array {
	sum := deltas(stats).Mul(in.sinkWeight(statistics))
	if dLSE != nil {
		sum = sum.Add(dLSE)
	}
	seesNoKey := statistics.Split(2, -1)[1].Squeeze(-1).Equal(mlxc.Scalar[float32](0))
	sum = mlxc.Where(seesNoKey, mlxc.Scalar[float32](0), sum)
	var broadcast []int
	for axis, size := range in.maskShape() {
		if axis < 3 && size == 1 {
			broadcast = append(broadcast, axis)
		}
	}
	if len(broadcast) > 0 {
		sum = sum.Sum(broadcast...)
	}
	return sum.Reshape(in.mask.Shape()...).AsType(in.mask.DType())
}
