package ops

import (
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// attentionMLX is AttentionLogSumExp composed of basic MLX operations in float32. Its gradient is MLX's. It holds all
// scores at once. cfg.Scale must be set.
func attentionMLX(q, k, v *mlxc.Array, cfg AttentionConfig) (out, lse *mlxc.Array) {
	batch, heads, queries, keys := q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2)
	if batch*queries*keys == 0 { // MLX has no maximum of an empty axis
		return attentionWithoutKeys(q, v, cfg)
	}
	// The query heads that share a key head get an axis of their own, along which k and v are broadcast.
	shared := heads / k.Dim(1)
	grouped := func(x *mlxc.Array, n int) *mlxc.Array {
		return x.Reshape(batch, k.Dim(1), n, x.Dim(2), x.Dim(3)).AsType(mlxc.Float32)
	}
	scaled := grouped(q, shared).MulScalar(float64(cfg.Scale))
	s := scaled.MatMul(grouped(k, 1).SwapAxes(-1, -2)).Reshape(batch, heads, queries, keys)
	if c := float64(cfg.SoftCap); c > 0 {
		s = s.DivScalar(c).Tanh().MulScalar(c)
	}
	s = cfg.masked(s)
	if cfg.Sinks != nil {
		sinks := cfg.Sinks.AsType(mlxc.Float32).Reshape(heads, 1, 1)
		s = mlxc.Concatenate(-1, s, sinks.BroadcastTo(batch, heads, queries, 1))
	}

	// The softmax of a row of −∞ and its gradient would be NaN. Replace the row by zeros.
	zero, hidden := mlxc.Scalar[float32](0), mlxc.Scalar(float32(math.Inf(-1)))
	empty := s.Max(-1).Equal(hidden)
	emptyRow := empty.ExpandDims(-1)
	s = mlxc.Where(emptyRow, zero, s)
	p := mlxc.Where(emptyRow, zero, s.SoftmaxPrecise(-1))
	lse = mlxc.Where(empty, hidden, s.LogSumExp(-1))
	p = p.Slice([]int{0, 0, 0, 0}, []int{batch, heads, queries, keys}, nil)
	p = p.Reshape(batch, k.Dim(1), shared, queries, keys)
	out = p.MatMul(grouped(v, 1)).Reshape(batch, heads, queries, v.Dim(3)).AsType(v.DType())
	return out, lse
}

// attentionWithoutKeys is attentionMLX for 0 batches, 0 queries or 0 keys.
func attentionWithoutKeys(q, v *mlxc.Array, cfg AttentionConfig) (out, lse *mlxc.Array) {
	rows := q.Shape()[:3]
	lse = mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(math.Inf(-1))), rows...)
	if cfg.Sinks != nil {
		lse = cfg.Sinks.AsType(mlxc.Float32).ExpandDims(-1).BroadcastTo(rows...)
	}
	return mlxc.Zeros(v.DType(), append(rows, v.Dim(3))...), lse
}

// masked applies the mask to the scores s, [batch, heads, queries, keys]. The scores of hidden keys become −∞.
func (c AttentionConfig) masked(s *mlxc.Array) *mlxc.Array {
	visible := c.visibleByPosition(s.Dim(2), s.Dim(3))
	switch {
	case c.Mask == nil:
	case c.Mask.DType() == mlxc.Bool:
		visible = andMask(visible, c.Mask)
	default:
		s = s.Add(c.Mask.AsType(mlxc.Float32))
	}
	if visible == nil {
		return s
	}
	return mlxc.Where(visible, s, mlxc.Scalar(float32(math.Inf(-1))))
}

// visibleByPosition returns a boolean array [queries, keys] that is true where Causal, Window and the packed sequences
// let a query see a key. It returns nil if they hide no key.
func (c AttentionConfig) visibleByPosition(queries, keys int) *mlxc.Array {
	var visible *mlxc.Array
	i, j := mlxc.Arange(mlxc.Int32, 0, float64(queries), 1), mlxc.Arange(mlxc.Int32, 0, float64(keys), 1)
	// position is the query's position among the keys.
	position := i.Add(mlxc.Scalar(int32(keys - queries)))
	if c.QueryStarts != nil {
		querySequence, keySequence := sequenceOf(i, c.QueryStarts), sequenceOf(j, c.KeyStarts)
		visible = querySequence.ExpandDims(1).Equal(keySequence)
		// The last query of a sequence has the position of its last key, so the ends of both coincide.
		one := mlxc.Scalar[int32](1)
		next := querySequence.Add(one)
		position = i.Add(c.KeyStarts.Take(next, 0).Sub(c.QueryStarts.Take(next, 0)))
	}
	position = position.ExpandDims(1)
	if c.Causal {
		visible = andMask(visible, j.LessEqual(position))
	}
	if w := c.Window; w != nil {
		if w.Left != Unbounded {
			visible = andMask(visible, j.GreaterEqual(position.Sub(mlxc.Scalar(int32(min(w.Left, queries+keys))))))
		}
		if w.Right != Unbounded {
			visible = andMask(visible, j.LessEqual(position.Add(mlxc.Scalar(int32(min(w.Right, queries+keys))))))
		}
	}
	return visible
}

// sequenceOf returns the index of each position's sequence: the number of starts at or before the position, without the
// first and the last start.
func sequenceOf(positions, starts *mlxc.Array) *mlxc.Array {
	others := starts.Slice([]int{1}, []int{starts.Dim(0) - 1}, nil)
	return others.LessEqual(positions.ExpandDims(1)).AsType(mlxc.Int32).Sum(1)
}

// andMask returns a ∧ b, where a nil a means all true.
func andMask(a, b *mlxc.Array) *mlxc.Array {
	if a == nil {
		return b
	}
	return a.LogicalAnd(b)
}
