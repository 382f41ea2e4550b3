package ops

import (
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var attentionKernels = newShaderFile("attention.metal")

// attentionInputs are the arrays of an attention. mask and sinks may be nil, and both
// starts.
type attentionInputs struct {
	q, k, v, mask, sinks   *mlxc.Array
	queryStarts, keyStarts *mlxc.Array
}

func (in attentionInputs) list() []*mlxc.Array {
	return []*mlxc.Array{in.q, in.k, in.v, in.mask, in.sinks, in.queryStarts, in.keyStarts}
}

func attentionInputsOf(list []*mlxc.Array) attentionInputs {
	return attentionInputs{list[0], list[1], list[2], list[3], list[4], list[5], list[6]}
}

// maskShape is the mask's shape in four axes; of zeros where there is none.
func (in attentionInputs) maskShape() [4]int {
	if in.mask == nil {
		return [4]int{}
	}
	shape := [4]int{1, 1, 1, 1}
	copy(shape[4-in.mask.NDim():], in.mask.Shape())
	return shape
}

// hasMaskGradient reports whether the mask is of numbers.
func (in attentionInputs) hasMaskGradient() bool {
	return in.mask != nil && in.mask.DType() != mlxc.Bool
}

// boundAttention has the inputs as the kernels take them: in the place of what is left out
// stands something that they do not read.
type boundAttention struct {
	attentionInputs
	maskOfKeys     *mlxc.Array // what the keys' kernel reads; mask is for queries
	sequences      int         // 0 where nothing is packed
	capped, masked bool
	sizes, numbers *mlxc.Array
}

func (in attentionInputs) bind(on target, cfg AttentionConfig) boundAttention {
	b := boundAttention{attentionInputs: in, capped: cfg.SoftCap > 0, masked: in.mask != nil}
	if in.mask == nil {
		b.mask = mlxc.Zeros(mlxc.Bool, 8)
	}
	if in.queryStarts == nil {
		b.queryStarts = mlxc.Zeros(mlxc.Int32, 8)
		b.keyStarts = b.queryStarts
	} else {
		b.sequences = in.queryStarts.Dim(0) - 1
	}
	left, right := math.MaxInt32/4, math.MaxInt32/4
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
	sizes := []int32{
		int32(in.q.Dim(1)), int32(in.k.Dim(1)), int32(in.q.Dim(2)), int32(in.k.Dim(2)), int32(left), int32(right), int32(b.sequences),
		int32(mask[0]), int32(mask[1]), int32(mask[2]), int32(mask[3]), int32(in.q.Dim(0)),
	}
	b.sizes = customkernels.Constants(sizes...)
	b.numbers = customkernels.Constants(cfg.Scale, cfg.SoftCap, 0, 0, 0, 0, 0, 0)
	b.maskOfKeys = b.mask
	if lanes := attentionTable[on.backend].lanes; lanes > 1 && in.mask != nil && in.mask.DType() == mlxc.Bool {
		b.mask, b.maskOfKeys = b.maskBits(on, mask, lanes)
	}
	return b
}

// maskBits packs a boolean mask of this shape in words of as many bits as simdgroups have lanes: for each
// query those of its keys, and for each key those of its queries.
func (b boundAttention) maskBits(on target, shape [4]int, lanes int) (ofQueries, ofKeys *mlxc.Array) {
	words := func(n int) int { return (n + lanes - 1) / lanes }
	batches, heads, queries, keys := shape[0], shape[1], shape[2], shape[3]
	results := on.launch(attentionKernels.kernel("attention_mask_bits"), customkernels.Launch{
		Grid:        [3]int{words(queries) * words(keys) * lanes, heads, batches},
		Threadgroup: [3]int{lanes, 1, 1},
		Template:    []mlxc.TemplateArg{{Name: "LANES", Value: lanes}},
		Outputs: []mlxc.Output{
			{Shape: []int{batches, heads, queries, words(keys)}, DType: mlxc.Uint32},
			{Shape: []int{batches, heads, keys, words(queries)}, DType: mlxc.Uint32},
		},
	}, b.mask, b.sizes)
	return results[0], results[1]
}

// launch is one of a kernel whose simdgroups own rows of so many heads.
func (b boundAttention) launch(g attentionGeometry, length, heads int) customkernels.Launch {
	return customkernels.Launch{
		Grid:        [3]int{g.groups(length, b.sequences) * g.threads(), heads, b.q.Dim(0)},
		Threadgroup: [3]int{g.threads(), 1, 1},
		Template: []mlxc.TemplateArg{
			{Name: "T", Value: b.q.DType()},
			{Name: "B", Value: b.mask.DType()},
			{Name: "CAPPED", Value: b.capped},
			{Name: "MASKED", Value: b.masked},
			{Name: "PAIRED", Value: g.paired},
			{Name: "LANES", Value: g.lanes},
			{Name: "SIMDGROUPS", Value: g.simdgroups},
			{Name: "M", Value: g.rows},
			{Name: "N", Value: g.columns},
			{Name: "D", Value: b.q.Dim(3)},
			{Name: "DV", Value: b.v.Dim(3)},
		},
	}
}

// geometry is the one for a length of rows of which a kernel holds so much.
func (b boundAttention) geometry(on target, length int, held heldRow) attentionGeometry {
	return attentionOf(on.backend, b.q.DType(), b.q.Dim(3), b.v.Dim(3), length, held)
}

// attentionForward returns out and, of each row, (m, l): see the kernels.
func attentionForward(on target, in attentionInputs, cfg AttentionConfig) (out, statistics *mlxc.Array) {
	results := scoped(func() []*mlxc.Array {
		b := in.bind(on, cfg)
		rows := in.q.Shape()[:3]
		l := b.launch(b.geometry(on, in.q.Dim(2), heldRow{operands: in.q.Dim(3), sums: in.v.Dim(3)}), in.q.Dim(2), in.q.Dim(1))
		l.MinGroupsPerCore = forwardResident(on.backend, in.q.DType(), max(in.q.Dim(3), in.v.Dim(3)))
		l.Outputs = []mlxc.Output{
			{Shape: append(rows[:3:3], in.v.Dim(3)), DType: in.q.DType()},
			{Shape: append(rows[:3:3], 2), DType: mlxc.Float32},
		}
		return on.launch(attentionKernels.kernel("attention_forward"), l,
			b.q, b.k, b.v, b.mask, in.allSinks(), b.queryStarts, b.keyStarts, b.sizes, b.numbers)
	})
	return results[0], results[1]
}

// logSumExp is lse of the rows, from their (m, l).
func logSumExp(statistics *mlxc.Array) *mlxc.Array {
	return scoped(func() []*mlxc.Array {
		parts := statistics.Split(2, -1)
		return []*mlxc.Array{parts[0].Add(parts[1].Log()).Squeeze(-1)}
	})[0]
}

// attentionBackward returns the gradients of the inputs, in their order; nil for an
// input that is nil.
func attentionBackward(on target, in attentionInputs, out, statistics, dOut, dLSE *mlxc.Array, cfg AttentionConfig) []*mlxc.Array {
	grads := make([]*mlxc.Array, len(in.list()))
	mlxc.WithScope(func() {
		b := in.bind(on, cfg)
		dOut := dOut.AsType(in.q.DType())
		rows := b.rows(on, out, statistics, dOut, dLSE)
		inputs := []*mlxc.Array{b.q, b.k, b.v, b.mask, dOut, rows, b.queryStarts, b.keyStarts, b.sizes, b.numbers}

		copy(grads, b.byTiles(on, inputs))
		switch {
		case !in.hasMaskGradient():
		case in.maskShape()[3] == 1:
			grads[3] = in.gradientOfRowMask(statistics, rows, dLSE)
		default:
			g := b.geometry(on, in.q.Dim(2), heldRow{})
			g.simdgroups = 1
			mask := in.maskShape()
			l := b.launch(g, 0, 0)
			l.Grid = [3]int{(mask[3] + g.columns - 1) / g.columns * g.threads(), (mask[2] + g.rows - 1) / g.rows, mask[0] * mask[1]}
			l.Outputs = []mlxc.Output{{Shape: in.mask.Shape(), DType: in.mask.DType()}}
			grads[3] = on.launch(attentionKernels.kernel("attention_dmask"), l, inputs...)[0]
		}
		if in.sinks != nil {
			grads[4] = in.sinkShare(statistics).Mul(rowDeltas(rows)).Sum(0, 2).Neg().AsType(in.sinks.DType())
		}
		for _, g := range grads {
			if g != nil {
				g.Keep()
			}
		}
	})
	for i, a := range in.list() {
		if a != nil && grads[i] == nil {
			grads[i] = zerosLike(a)[0]
		}
	}
	return grads
}

// byTiles returns dq, dk and dv, from kernels that compute the weights anew, tile by tile.
func (b boundAttention) byTiles(on target, inputs []*mlxc.Array) []*mlxc.Array {
	like := func(a *mlxc.Array) mlxc.Output { return mlxc.Output{Shape: a.Shape(), DType: a.DType()} }
	width, both := b.q.Dim(3), b.q.Dim(3)+b.v.Dim(3)
	forQ := b.launch(b.geometry(on, b.q.Dim(2), heldRow{operands: both, sums: width}), b.q.Dim(2), b.q.Dim(1))
	forQ.Outputs = []mlxc.Output{like(b.q)}
	forKV := b.launch(b.geometry(on, b.k.Dim(2), heldRow{operands: both, sums: both}), b.k.Dim(2), b.k.Dim(1))
	forKV.Outputs = []mlxc.Output{like(b.k), like(b.v)}
	grads := on.launch(attentionKernels.kernel("attention_dq"), forQ, inputs...)
	ofKeys := slices.Clone(inputs)
	ofKeys[3] = b.maskOfKeys
	return append(grads, on.launch(attentionKernels.kernel("attention_dkv"), forKV, ofKeys...)...)
}

// rowSize is the number of floats in which the backward kernels keep what they know of a row, and
// rowDelta the place of delta.
const (
	rowSize  = 4
	rowDelta = 2
)

// rows returns what the backward kernels know of the rows.
func (b boundAttention) rows(on target, out, statistics, dOut, dLSE *mlxc.Array) *mlxc.Array {
	if b.exactDelta(on) {
		return b.rowsOfProducts(on, statistics, dOut, dLSE)
	}
	return rowsOfOutput(on, out, statistics, dOut, dLSE)
}

// exactDelta reports whether some gradient is rounded neither to 16 bits nor, in its products, to TF32's.
func (b boundAttention) exactDelta(on target) bool {
	isFloat32 := func(a *mlxc.Array) bool { return a != nil && a.DType() == mlxc.Float32 }
	return exactProducts(on.backend, b.q.DType(), max(b.q.Dim(3), b.v.Dim(3))) || isFloat32(b.mask) || isFloat32(b.sinks)
}

// rowsOutput is the shape of what rowsOfProducts and rowsOfOutput return.
func rowsOutput(dOut *mlxc.Array) []mlxc.Output {
	return []mlxc.Output{{Shape: append(dOut.Shape()[:3], rowSize), DType: mlxc.Float32}}
}

// rowsOfProducts are rows with delta from the products of weights and their gradients.
func (b boundAttention) rowsOfProducts(on target, statistics, dOut, dLSE *mlxc.Array) *mlxc.Array {
	queries := b.q.Dim(2)
	l := b.launch(b.geometry(on, queries, heldRow{operands: b.q.Dim(3) + b.v.Dim(3)}), queries, b.q.Dim(1))
	l.Outputs = rowsOutput(dOut)
	return on.launch(attentionKernels.kernel("attention_delta"), l,
		b.q, b.k, b.v, b.mask, dOut, statistics, dLSE, b.queryStarts, b.keyStarts, b.sizes, b.numbers)[0]
}

// rowsOfOutput are rows with delta from the output, as it was rounded.
func rowsOfOutput(on target, out, statistics, dOut, dLSE *mlxc.Array) *mlxc.Array {
	t := attentionTable[on.backend]
	width := out.Dim(3)
	n := out.Size() / width
	return on.launch(attentionKernels.kernel("attention_delta_of_output"), customkernels.Launch{
		Grid:        [3]int{(n + t.least - 1) / t.least * t.lanes},
		Threadgroup: [3]int{t.lanes},
		Template: []mlxc.TemplateArg{
			{Name: "T", Value: out.DType()},
			{Name: "LANES", Value: t.lanes},
			{Name: "M", Value: t.least},
			{Name: "DV", Value: width},
		},
		Outputs: rowsOutput(dOut),
	}, out, dOut, statistics, dLSE, uint32Args(n)[0])[0]
}

// rowDeltas are delta − dlse of the rows.
func rowDeltas(rows *mlxc.Array) *mlxc.Array { return rows.Split(rowSize, -1)[rowDelta].Squeeze(-1) }

// allSinks are the sinks in float32, −∞ where the attention has none.
func (in attentionInputs) allSinks() *mlxc.Array {
	if in.sinks == nil {
		return mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(math.Inf(-1))), in.q.Dim(1))
	}
	return in.sinks.AsType(mlxc.Float32)
}

// sinkShare is the weight of each row's sink, exp(sink − lse). A row's l is at least 1, or 0 if the row
// sees no key and its sink is −∞.
func (in attentionInputs) sinkShare(statistics *mlxc.Array) *mlxc.Array {
	parts := statistics.Split(2, -1)
	return in.allSinks().Reshape(-1, 1).Sub(parts[0].Squeeze(-1)).Exp().Div(parts[1].Squeeze(-1).Maximum(mlxc.Scalar[float32](1)))
}

// gradientOfRowMask is the gradient of a mask with one element for all keys of a row. The weights of the
// keys add up to 1 − share, where share is the sink's weight, and their products with dout·vᵀ to delta, so
// that the gradients of the row's scores add up to
//
//	delta − (delta − dlse)·(1 − share) = (delta − dlse)·share + dlse,
//
// which is 0 without a sink and a cotangent of lse.
func (in attentionInputs) gradientOfRowMask(statistics, rows, dLSE *mlxc.Array) *mlxc.Array {
	sum := rowDeltas(rows).Mul(in.sinkShare(statistics)).Add(dLSE)
	seesNothing := statistics.Split(2, -1)[1].Squeeze(-1).Equal(mlxc.Scalar[float32](0))
	sum = mlxc.Where(seesNothing, mlxc.Scalar[float32](0), sum)
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
