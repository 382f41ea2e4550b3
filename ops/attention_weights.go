package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// maxWeights is how many bytes the weights of the heads that are at work may have, and
// their gradients together: enough that matrix products run at full speed.
const maxWeights = 256 << 20

// byWeights returns dq, dk and dv by MLX's matrix products, of weights that are in memory for
// some heads at a time, those of one key head at least, in q's dtype.
func (in attentionInputs) byWeights(on launcher, dOut, rows *mlxc.Array, cfg AttentionConfig, budget int) []*mlxc.Array {
	heads, keyHeads, queries, keys := in.q.Dim(1), in.k.Dim(1), in.q.Dim(2), in.k.Dim(2)
	shared := heads / keyHeads
	maskShape := in.maskShape()
	several := min(max(budget/(2*shared*queries*keys*in.q.DType().Size()), 1), keyHeads)

	var dq, dk, dv, before []*mlxc.Array
	for batch := range in.q.Dim(0) {
		for first := 0; first < keyHeads; first += several {
			n := min(several, keyHeads-first)
			of := func(a *mlxc.Array, shared int) *mlxc.Array { return headsOf(a, batch, first*shared, (first+n)*shared) }
			part := in
			part.q, part.k, part.v = of(in.q, shared), of(in.k, 1), of(in.v, 1)
			if in.mask != nil {
				part.mask = of(in.mask.Reshape(maskShape[:]...), shared)
			}
			if before != nil {
				// Else the weights of all heads could be there at once. On CUDA they may be, as far as the host is
				// ahead: to wait for each other took twice as long and had a fifth of the memory (docs/h200).
				part.q = part.q.After(before...)
			}
			dOut := of(dOut, shared)
			p, ds := part.weights(on, dOut, of(rows, shared), cfg)

			// The queries of all heads that share a key head are rows of one matrix.
			joined := func(a *mlxc.Array) *mlxc.Array { return a.Reshape(n, -1, a.Dim(3)) }
			p, ds = joined(p), joined(ds)
			before = []*mlxc.Array{
				ds.MatMul(joined(part.k)), ds.SwapAxes(-1, -2).MatMul(joined(part.q)), p.SwapAxes(-1, -2).MatMul(joined(dOut)),
			}
			dq, dk, dv = append(dq, before[0]), append(dk, before[1]), append(dv, before[2])
		}
	}
	return []*mlxc.Array{
		mlxc.Concatenate(0, dq...).Reshape(in.q.Shape()...),
		mlxc.Concatenate(0, dk...).Reshape(in.k.Shape()...),
		mlxc.Concatenate(0, dv...).Reshape(in.v.Shape()...),
	}
}

// headsOf are the heads [first, end) of a batch. Axes of one element are left alone.
func headsOf(a *mlxc.Array, batch, first, end int) *mlxc.Array {
	start, stop := make([]int, 4), a.Shape()
	if stop[0] > 1 {
		start[0], stop[0] = batch, batch+1
	}
	if stop[1] > 1 {
		start[1], stop[1] = first, end
	}
	return a.Slice(start, stop, nil)
}

// weights returns p and scale·ds, (batches, heads, queries, keys).
func (in attentionInputs) weights(on launcher, dOut, rows *mlxc.Array, cfg AttentionConfig) (p, ds *mlxc.Array) {
	b := in.bind(cfg)
	l := b.launch(b.geometry(on, in.q.Dim(2)), in.q.Dim(2), in.q.Dim(1))
	weights := mlxc.Output{Shape: append(in.q.Shape()[:3], in.k.Dim(2)), DType: in.q.DType()}
	l.Outputs = []mlxc.Output{weights, weights}
	zero := float32(0)
	l.InitValue = &zero
	results := on.launch(attentionKernels.get("attention_weights"), l,
		b.q, b.k, b.v, b.mask, dOut, rows, b.queryStarts, b.keyStarts, b.sizes, b.numbers)
	return results[0], results[1]
}
