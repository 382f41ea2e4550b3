package suite

import (
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// builtIn computes the case with MLX's fused function, which is causal or takes a mask. Every other rule becomes part
// of the mask.
func (c attentionCase) builtIn(in []*mlxc.Array) []*mlxc.Array {
	o := optional(c, in)
	cfg := mlxc.AttentionConfig{Scale: c.scale, Sinks: o.sinks}
	if c.causal && c.window == nil && c.queryStarts == nil && c.mask == noMask {
		cfg.Causal = true
	} else {
		cfg.Mask = c.wholeMask(o.mask)
	}
	return []*mlxc.Array{mlxc.ScaledDotProductAttention(in[0], in[1], in[2], cfg)}
}

// wholeMask joins a mask, which may be nil, with the rules by position.
func (c attentionCase) wholeMask(mask *mlxc.Array) *mlxc.Array {
	if !c.causal && c.window == nil && c.queryStarts == nil {
		return mask
	}
	seen := c.seenByPosition()
	switch c.mask {
	case noMask:
		return seen
	case booleans:
		return seen.LogicalAnd(mask)
	default:
		return mlxc.Where(seen, mask, mlxc.Scalar(float32(math.Inf(-1))).AsType(mask.DType()))
	}
}

// seenByPosition returns a boolean for each query and key.
func (c attentionCase) seenByPosition() *mlxc.Array {
	seen := make([]bool, 0, c.queries*c.keys)
	a := c.positions()
	for i := range c.queries {
		for j := range c.keys {
			seen = append(seen, a.PositionSeen(i, j, c.queries, c.keys))
		}
	}
	return mlxc.FromSlice(seen, c.queries, c.keys)
}

// composed computes the case with basic MLX operations: products in the dtype, the softmax of a row in float32. Hidden
// scores are the most negative finite number, because a row of −∞ alone would give NaN, also in the gradient.
func (c attentionCase) composed(in []*mlxc.Array) []*mlxc.Array {
	q, k, v, o := in[0], in[1], in[2], optional(c, in)
	dtype, group := q.DType(), c.heads/c.kvHeads
	number := func(x float64) *mlxc.Array { return mlxc.Scalar(float32(x)).AsType(dtype) }
	grouped := func(x *mlxc.Array, n int) *mlxc.Array {
		return x.Reshape(c.batch, c.kvHeads, n, x.Dim(2), x.Dim(3))
	}

	s := grouped(q.Mul(number(float64(c.scale))), group).MatMul(grouped(k, 1).SwapAxes(-1, -2))
	s = s.Reshape(c.batch, c.heads, c.queries, c.keys)
	if c.softCap {
		s = s.Div(number(attentionSoftCap)).Tanh().Mul(number(attentionSoftCap))
	}
	seen := c.seenByPosition()
	switch c.mask {
	case booleans:
		seen = seen.LogicalAnd(o.mask)
	case added:
		shown := o.mask.Greater(number(math.Inf(-1)))
		s, seen = s.Add(mlxc.Where(shown, o.mask, number(0))), seen.LogicalAnd(shown)
	}
	least := map[mlxc.DType]float64{mlxc.Float32: -math.MaxFloat32, mlxc.Float16: -65504, mlxc.BFloat16: -0x1.fep127}[dtype]
	s = mlxc.Where(seen, s, number(least))
	if c.sinks {
		column := o.sinks.Reshape(c.heads, 1, 1).BroadcastTo(c.batch, c.heads, c.queries, 1)
		s = mlxc.Concatenate(-1, s, column)
	}
	p := s.SoftmaxPrecise(-1).Slice([]int{0, 0, 0, 0}, []int{c.batch, c.heads, c.queries, c.keys}, nil)
	seesAny := seen.Any(-1).ExpandDims(-1)
	p = mlxc.Where(seesAny, p, number(0)).Reshape(c.batch, c.kvHeads, group, c.queries, c.keys)
	out := p.MatMul(grouped(v, 1)).Reshape(c.batch, c.heads, c.queries, c.valueDim)
	if !c.lse {
		return []*mlxc.Array{out}
	}
	lse := s.AsType(mlxc.Float32).LogSumExp(-1)
	if !c.sinks {
		lse = mlxc.Where(seesAny.Squeeze(-1), lse, mlxc.Scalar(float32(math.Inf(-1))))
	}
	return []*mlxc.Array{out, lse}
}
