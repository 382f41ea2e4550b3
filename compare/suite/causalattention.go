package suite

import (
	"fmt"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// causalAttentionCase is causal attention with the heads side by side in rows. If batch is 0, the arrays have no batch
// axis.
type causalAttentionCase attentionCase

func causalAttention() compare.Op {
	op := compare.Op{Name: "causal-attention"}
	add := func(c causalAttentionCase) { op.Cases = append(op.Cases, c.build()) }

	for _, length := range []int{1, 2, 7, 31, 33, 127, 129, 257} {
		add(causalAttentionCase{heads: 3, queries: length, dim: 16})
	}
	for _, dim := range []int{1, 8, 33, 40, 64, 80, 128, 256} {
		add(causalAttentionCase{heads: 4, kvHeads: 2, queries: 37, dim: dim})
	}
	for _, c := range []causalAttentionCase{
		{heads: 8, kvHeads: 1, queries: 33, dim: 16},
		{heads: 6, kvHeads: 2, queries: 17, keys: 70, dim: 24},
		{heads: 2, queries: 1, keys: 129, dim: 64},
		{heads: 2, queries: 70, keys: 33, dim: 16}, // the first queries see no key
		{heads: 2, queries: 35, dim: 64, valueDim: 24},
		{batch: 1, heads: 2, queries: 35, dim: 16},
		{batch: 3, heads: 4, kvHeads: 2, queries: 33, keys: 37, dim: 16},
		{heads: 2, queries: 1000, dim: 32},
		{heads: 2, queries: 0, dim: 8},
		{batch: 2, heads: 2, queries: 16, noKeys: true, dim: 8},
	} {
		add(c)
	}
	for _, layout := range everyLayout() {
		add(causalAttentionCase{batch: 2, heads: 2, queries: 33, dim: 16, layouts: layouts{"q": layout}})
		add(causalAttentionCase{batch: 2, heads: 2, queries: 33, dim: 16, layouts: layouts{"k": layout, "v": layout}})
		add(causalAttentionCase{batch: 2, heads: 2, queries: 33, dim: 16, layouts: layouts{"dout": layout}})
		if layout != compare.Broadcast { // all queries and all keys would be equal
			add(causalAttentionCase{heads: 2, queries: 33, dim: 16, layouts: layouts{"q": layout, "k": layout, "v": layout}})
		}
	}
	return op
}

func (c causalAttentionCase) build() compare.Case {
	batched := c.batch > 0
	usual := attentionCase(c)
	usual.batch, usual.causal = max(c.batch, 1), true
	usual = usual.withDefaults()

	shape := func(length, heads, dim int) []int {
		rows := []int{usual.batch, length, heads * dim}
		if !batched {
			rows = rows[1:]
		}
		return rows
	}
	inputs := []compare.Input{
		{Name: "q", Shape: shape(usual.queries, usual.heads, usual.dim)},
		{Name: "k", Shape: shape(usual.keys, usual.kvHeads, usual.dim)},
		{Name: "v", Shape: shape(usual.keys, usual.kvHeads, usual.valueDim)},
	}
	for i := range inputs {
		inputs[i].Layout = c.layouts[inputs[i].Name]
	}
	heads := []int{usual.heads, usual.kvHeads, usual.kvHeads}
	split := func(in []oracle.Tensor) []oracle.Tensor {
		out := slices.Clone(in)
		for i := range out {
			out[i] = splitHeads(in[i], usual.batch, heads[i])
		}
		return out
	}
	ofHeads := func(f mlxc.Func) mlxc.Func {
		return func(in []*mlxc.Array) []*mlxc.Array {
			args := slices.Clone(in)
			for i, x := range args {
				args[i] = x.Reshape(usual.batch, x.Dim(-2), heads[i], x.Dim(-1)/heads[i]).Transpose(0, 2, 1, 3)
			}
			out := f(args)[0].Transpose(0, 2, 1, 3)
			return []*mlxc.Array{out.Reshape(shape(usual.queries, usual.heads, usual.valueDim)...)}
		}
	}
	return compare.Case{
		UsesTF32: true,
		Name:     c.name(usual),
		Inputs:   inputs,
		Outputs: []compare.Output{{
			Name: "out", Shape: shape(usual.queries, usual.heads, usual.valueDim), Layout: c.layouts["dout"],
		}},
		Reference: compare.Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor {
				out, _ := usual.exact(split(in)).Forward()
				return []oracle.Tensor{joinHeads(out, shape(usual.queries, usual.heads, usual.valueDim))}
			},
			Gradient: func(in, ct []oracle.Tensor) []oracle.Tensor {
				grads := usual.exactGradient(split(in), []oracle.Tensor{splitHeads(ct[0], usual.batch, usual.heads)})
				for i := range grads {
					grads[i] = joinHeads(grads[i], inputs[i].Shape)
				}
				return grads
			},
			Composed: ofHeads(usual.composed),
		},
		Ours: func(in []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{ops.CausalAttention(in[0], in[1], in[2], usual.heads, usual.kvHeads)}
		},
		MLX: ofHeads(usual.builtIn),
	}
}

// name returns the sizes as in attentionCase.name, without a batch if there is no batch axis, and the layouts.
func (c causalAttentionCase) name(usual attentionCase) string {
	shape := usual.sizes()
	if c.batch > 0 {
		shape = fmt.Sprintf("%dx%s", c.batch, shape)
	}
	return caseName(shape, c.layouts.String())
}

// splitHeads returns [batch, heads, length, width] for rows with the heads side by side.
func splitHeads(rows oracle.Tensor, batch, heads int) oracle.Tensor {
	axes := len(rows.Shape)
	length, width := rows.Shape[axes-2], rows.Shape[axes-1]/heads
	out := oracle.New(batch, heads, length, width)
	for at := range out.Data {
		out.Data[at] = rows.Data[besideEachOther(at, heads, length, width)]
	}
	return out
}

// joinHeads is the inverse of splitHeads.
func joinHeads(split oracle.Tensor, shape []int) oracle.Tensor {
	out := oracle.New(shape...)
	for at, v := range split.Data {
		out.Data[besideEachOther(at, split.Shape[1], split.Shape[2], split.Shape[3])] = v
	}
	return out
}

// besideEachOther converts a position in an array [batch, heads, length, width] to the position of the same element in
// rows with the heads side by side.
func besideEachOther(at, heads, length, width int) int {
	column, row, head, batch := at%width, at/width%length, at/(width*length)%heads, at/(width*length*heads)
	return ((batch*length+row)*heads+head)*width + column
}
