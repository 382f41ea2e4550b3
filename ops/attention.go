package ops

import (
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Unbounded is a side of a Window without a limit.
const Unbounded = -1

// A Window is how many keys a query sees to the left and to the right of its own
// position: query i sees the keys from i+Lkv−Lq−Left to i+Lkv−Lq+Right, so that the
// last query's position is that of the last key (Beltagy et al., "Longformer", 2020,
// section 3).
type Window struct{ Left, Right int }

// AttentionConfig says what attention computes beyond its operands. The zero value is
// plain attention: every query sees every key, and scores are scaled by head_dim^−½.
type AttentionConfig struct {
	// Scale of the scores; 0 stands for head_dim^−½.
	Scale float32
	// Causal lets query i see the keys up to i+Lkv−Lq, its own position.
	Causal bool
	// Window, if it is not nil, is a limit beside those of Causal and Mask.
	Window *Window
	// Mask is broadcast to (batch, heads, queries, keys); nil for none. Booleans say what
	// is seen. A mask of float32, float16 or bfloat16 is added to the scores after scale
	// and soft-cap and has a gradient; −∞ hides.
	Mask *mlxc.Array
	// Sinks, of shape (heads) and float32, float16 or bfloat16, are one more score in
	// each row's sum that has no value; nil for none. They have a gradient (Xiao et al.,
	// "Efficient Streaming Language Models with Attention Sinks", 2024, section 3.3).
	Sinks *mlxc.Array
	// SoftCap c, if it is not 0, bounds the scaled scores s: c·tanh(s/c).
	SoftCap float32
	// QueryStarts and KeyStarts, int32 and one longer than there are sequences, pack
	// sequences of different lengths one after the other along the length axis of batch
	// 1: sequence n has the queries and the keys from its entry to before the next one.
	// They ascend from 0 to the length of q and of k; a sequence may be empty. A query
	// sees keys of its own sequence alone, and Causal and Window count positions and
	// lengths within it. nil for none; there are both or neither. Starts that are not
	// computed yet, or are arguments of a transform, are not checked: where they do not
	// ascend or leave the axis, what comes out has no meaning.
	QueryStarts, KeyStarts *mlxc.Array
}

// Attention is softmax(scale·q·kᵀ + mask)·v, with this project's forward pass and
// gradient.
//
// q has the shape (B,Hq,Lq,D), k (B,Hkv,Lkv,D) and v (B,Hkv,Lkv,DV), all of one dtype:
// float32, float16 or bfloat16. Hq is a multiple of Hkv, and neighbouring query heads
// share a key head (Ainslie et al., "GQA", 2023, section 2.2). The result has the shape
// (B,Hq,Lq,DV) and that dtype; arithmetic is float32, but for the products of matrices on an
// NVIDIA GPU, which are of TF32 as MLX's own are (see [mlxc.TF32]).
//
// With Z = scale·q·kᵀ, or c·tanh(scale·q·kᵀ/c) with a soft cap c, S = Z masked,
// lse = log Σ exp(S) over the keys of a row and its sink, P = exp(S − lse) and out = P·v,
// the gradient for a cotangent dout is, with delta = Σ dout·out over a row (Dao et al.,
// "FlashAttention", 2022, appendix B.2):
//
//	dv = Pᵀ·dout
//	dS = P·(dout·vᵀ − delta), which is the mask's gradient, summed over what it is broadcast along
//	dq = scale·dS'·k, dk = scale·dS'ᵀ·q, where dS' = dS·sech²(scale·q·kᵀ/c) with a soft cap, else dS
//	dsink = −Σ exp(sink − lse)·delta over the rows of a head
//
// In the kernels delta is computed as Σ P·(dout·vᵀ) where a gradient is of float32, and from
// out where all are of 16 bits. A row that sees no key has the output 0 and gives no gradient.
//
// Memory grows with the lengths, and not with their product: the kernels compute the
// scores anew, a tile at a time. Heads wider than 256 are the exception: they are composed of MLX's
// operations, which hold all scores. On GPUs, where no gradient is
// being taken (see mlxc.Differentiating), MLX's own fused forward kernel computes what
// it is made for: heads of 64, 80 or 128 with no options but Scale, Causal and Sinks. The
// last bits of its result are not those of a forward pass under a gradient.
func Attention(q, k, v *mlxc.Array, c AttentionConfig) *mlxc.Array {
	if checkAttention(q, k, v, c) == nil && !mlxc.Differentiating() && c.fusedByMLX(mlxc.CurrentBackend(), q, k, v) {
		return mlxc.ScaledDotProductAttention(q, k, v, mlxc.AttentionConfig{Scale: c.Scale, Causal: c.Causal, Sinks: c.Sinks})
	}
	out, lse := attention("ops.Attention", q, k, v, c)
	lse.Free()
	return out
}

// AttentionLogSumExp is Attention together with lse, the logarithm of each row's sum of
// exponentials: float32 of the shape (B,Hq,Lq), the sink included, −∞ where a row sees no
// key and has no sink. It has a gradient: for its cotangent dlse, P·dlse joins dS, and
// Σ exp(sink − lse)·dlse joins dsink. With it, results over parts of the keys can be put
// together.
func AttentionLogSumExp(q, k, v *mlxc.Array, c AttentionConfig) (out, lse *mlxc.Array) {
	return attention("ops.AttentionLogSumExp", q, k, v, c)
}

// fusedByMLX reports whether MLX has a fused forward kernel for these arguments, and means
// the same by them: it gives rows that see nothing the mean of all values.
func (c AttentionConfig) fusedByMLX(d mlxc.Backend, q, k, v *mlxc.Array) bool {
	others := c.Window != nil || c.Mask != nil || c.SoftCap != 0 || c.QueryStarts != nil
	seeing := k.Dim(2) > 0 && (!c.Causal || q.Dim(2) <= k.Dim(2))
	width := q.Dim(3)
	return d != mlxc.BackendCPU && !others && seeing && (width == 64 || width == 80 || width == 128) && v.Dim(3) == width
}

func attention(op string, q, k, v *mlxc.Array, c AttentionConfig) (out, lse *mlxc.Array) {
	if err := checkAttention(q, k, v, c); err != nil {
		err = opError(op, err, q, k, v, c.Mask, c.Sinks, c.QueryStarts, c.KeyStarts)
		return mlxc.InvalidArray(err), mlxc.InvalidArray(err)
	}
	c = c.withScale(q.Dim(-1))
	if q.Size() == 0 || k.Size() == 0 || max(q.Dim(3), v.Dim(3)) > widestHead || !kernelsAvailable(op) {
		return attentionMLX(q, k, v, c)
	}
	if d, dv := q.Dim(3), v.Dim(3); d%8 != 0 || dv%8 != 0 {
		// Columns of zeros add nothing.
		mlxc.WithScope(func() {
			out, lse = attention(op, wholeEights(q), wholeEights(k), wholeEights(v), c)
			out = out.Slice([]int{0, 0, 0, 0}, append(q.Shape()[:3], dv), nil).Keep()
			lse.Keep()
		})
		return out, lse
	}
	in := attentionInputs{q, k, v, c.Mask, c.Sinks, c.QueryStarts, c.KeyStarts}
	results := withGradient(in.list(),
		func(args []*mlxc.Array) []*mlxc.Array {
			out, statistics := attentionForward(currentTarget(), attentionInputsFrom(args), c)
			return []*mlxc.Array{out, logSumExp(statistics), statistics}
		},
		func(args, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			return attentionBackward(currentTarget(), attentionInputsFrom(args), outputs[0], outputs[2], cotangents[0], cotangents[1], c)
		})
	if len(results) != 3 { // a single error
		return results[0], results[0]
	}
	results[2].Free()
	return results[0], results[1]
}

// widestHead is the widest head that the kernels are for.
const widestHead = 256

// wholeEights appends columns of zeros, up to a multiple of eight.
func wholeEights(x *mlxc.Array) *mlxc.Array {
	shape, padded := x.Shape(), x.Shape()
	padded[3] = (shape[3] + 7) / 8 * 8
	return mlxc.Zeros(x.DType(), padded...).SliceUpdate(x, []int{0, 0, 0, 0}, shape, nil)
}

// withScale replaces a Scale of 0 by what it stands for.
func (c AttentionConfig) withScale(headDim int) AttentionConfig {
	if c.Scale == 0 {
		c.Scale = float32(1 / math.Sqrt(float64(headDim)))
	}
	return c
}

// CausalAttention is causal Attention of the heads that lie side by side in rows, as
// projections give them: q has the shape (Lq, heads·head_dim), k (Lkv, kvHeads·head_dim)
// and v (Lkv, kvHeads·DV), or all of them have one more axis of batches before. The
// scale is head_dim^−½. The result has the shape of q, with heads·DV in its last axis.
func CausalAttention(q, k, v *mlxc.Array, heads, kvHeads int) *mlxc.Array {
	const op = "ops.CausalAttention"
	if err := checkHeadsInRows(q, k, v, heads, kvHeads); err != nil {
		return mlxc.InvalidArray(opError(op, err, q, k, v))
	}
	split := func(x *mlxc.Array, heads int) *mlxc.Array {
		batch := 1
		if x.NDim() == 3 {
			batch = x.Dim(0)
		}
		return x.Reshape(batch, x.Dim(-2), heads, x.Dim(-1)/heads).Transpose(0, 2, 1, 3)
	}
	out, lse := attention(op, split(q, heads), split(k, kvHeads), split(v, kvHeads), AttentionConfig{Causal: true})
	lse.Free()
	if out.Err() != nil {
		return out
	}
	shape := q.Shape()
	shape[len(shape)-1] = heads * out.Dim(-1)
	return out.Transpose(0, 2, 1, 3).Reshape(shape...)
}

// checkHeadsInRows checks what CausalAttention needs to take its arguments apart.
func checkHeadsInRows(q, k, v *mlxc.Array, heads, kvHeads int) error {
	for _, x := range []struct {
		name  string
		array *mlxc.Array
		heads int
	}{{"q", q, heads}, {"k", k, kvHeads}, {"v", v, kvHeads}} {
		if err := requireArray(x.name, x.array); err != nil {
			return err
		}
		switch n := x.array.NDim(); {
		case n != 2 && n != 3:
			return fmt.Errorf("%s must have the axes [length, heads·head_dim], perhaps one of batches before them", x.name)
		case n != q.NDim():
			return fmt.Errorf("q and %s must have as many axes as each other", x.name)
		case x.heads < 1:
			return fmt.Errorf("%s is to have %d heads: there must be one at least", x.name, x.heads)
		case x.array.Dim(-1)%x.heads != 0:
			return fmt.Errorf("%s has rows of %d elements, which is no multiple of %d heads", x.name, x.array.Dim(-1), x.heads)
		}
	}
	return nil
}
