package ops

import (
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// attentionMLX is AttentionLogSumExp composed of MLX's operations, with their gradients,
// in float32. It holds all scores at once. cfg.Scale is not 0.
func attentionMLX(q, k, v *mlxc.Array, cfg AttentionConfig) (out, lse *mlxc.Array) {
	batch, heads, queries, keys := q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2)
	if batch*queries*keys == 0 { // MLX has no maximum of nothing.
		return attentionToNothing(q, v, cfg)
	}
	// The heads that share a key head become an axis that k and v are broadcast along.
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

	// A row of nothing but −∞ would be NaN in the gradient too, so another takes its place.
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

// attentionToNothing is attentionMLX where there are no queries or no keys.
func attentionToNothing(q, v *mlxc.Array, cfg AttentionConfig) (out, lse *mlxc.Array) {
	rows := q.Shape()[:3]
	lse = mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(math.Inf(-1))), rows...)
	if cfg.Sinks != nil {
		lse = cfg.Sinks.AsType(mlxc.Float32).ExpandDims(-1).BroadcastTo(rows...)
	}
	return mlxc.Zeros(v.DType(), append(rows, v.Dim(3))...), lse
}

// masked returns the scores s, (batch, heads, queries, keys), with −∞ for what is not
// seen.
func (c AttentionConfig) masked(s *mlxc.Array) *mlxc.Array {
	seen := c.positionsSeen(s.Dim(2), s.Dim(3))
	switch {
	case c.Mask == nil:
	case c.Mask.DType() == mlxc.Bool:
		seen = both(seen, c.Mask)
	default:
		s = s.Add(c.Mask.AsType(mlxc.Float32))
	}
	if seen == nil {
		return s
	}
	return mlxc.Where(seen, s, mlxc.Scalar(float32(math.Inf(-1))))
}

// positionsSeen tells by their positions which keys a query sees, (queries, keys), or
// nil for all.
func (c AttentionConfig) positionsSeen(queries, keys int) *mlxc.Array {
	var seen *mlxc.Array
	i, j := mlxc.Arange(mlxc.Int32, 0, float64(queries), 1), mlxc.Arange(mlxc.Int32, 0, float64(keys), 1)
	// The position of a query among the keys.
	at := i.Add(mlxc.Scalar(int32(keys - queries)))
	if c.QueryStarts != nil {
		querySequence, keySequence := sequenceOf(i, c.QueryStarts), sequenceOf(j, c.KeyStarts)
		seen = querySequence.ExpandDims(1).Equal(keySequence)
		// The last query of a sequence is aligned with its last key, and so are their ends.
		one := mlxc.Scalar[int32](1)
		next := querySequence.Add(one)
		at = i.Add(c.KeyStarts.Take(next, 0).Sub(c.QueryStarts.Take(next, 0)))
	}
	at = at.ExpandDims(1)
	if c.Causal {
		seen = both(seen, j.LessEqual(at))
	}
	if w := c.Window; w != nil {
		if w.Left != Unbounded {
			seen = both(seen, j.GreaterEqual(at.Sub(mlxc.Scalar(int32(min(w.Left, queries+keys))))))
		}
		if w.Right != Unbounded {
			seen = both(seen, j.LessEqual(at.Add(mlxc.Scalar(int32(min(w.Right, queries+keys))))))
		}
	}
	return seen
}

// sequenceOf returns the sequence of each position: as many start at it or before, but
// for the first.
func sequenceOf(positions, starts *mlxc.Array) *mlxc.Array {
	others := starts.Slice([]int{1}, []int{starts.Dim(0) - 1}, nil)
	return others.LessEqual(positions.ExpandDims(1)).AsType(mlxc.Int32).Sum(1)
}

// both joins two conditions, of which the first may be nil.
func both(a, b *mlxc.Array) *mlxc.Array {
	if a == nil {
		return b
	}
	return a.LogicalAnd(b)
}
