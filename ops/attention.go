package ops

import (
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Unbounded is a side of a [Window] without a limit.
const Unbounded = -1

// A Window limits the keys that a query sees by position. With Lq queries and Lkv keys, query i sees the keys from
// i+Lkv−Lq−Left to i+Lkv−Lq+Right, so the last query has the position of the last key (Beltagy et al., "Longformer",
// 2020, section 3). Left and Right are at least 0, or [Unbounded].
type Window struct{ Left, Right int }

// AttentionConfig holds the options of [Attention]. The zero value selects plain attention: every query sees every key,
// and scores are scaled by head_dim^−½.
type AttentionConfig struct {
	// Scale multiplies the scores q·kᵀ. It must be finite; 0 means head_dim^−½.
	Scale float32
	// Causal limits query i to the keys up to i+Lkv−Lq, its own position. Lq and Lkv count the queries and the keys.
	Causal bool
	// Window limits the keys by position, in addition to Causal and Mask. nil means no window.
	Window *Window
	// Mask is broadcast to [batch, heads, queries, keys]. A boolean mask is true where a query sees a key. A mask of
	// float32, float16 or bfloat16 is added to the scores after scale and soft cap, and has a gradient; −∞ hides a key.
	// nil means no mask.
	Mask *mlxc.Array
	// Sinks holds one additional score per query head. The softmax of each row includes the score, but it has no value
	// vector (Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2024, section 3.3). Sinks has
	// the shape [heads], is float32, float16 or bfloat16, and has a gradient. nil means no sinks.
	Sinks *mlxc.Array
	// SoftCap c limits the scaled scores s to c·tanh(s/c). It must be finite and not negative; 0 means no cap.
	SoftCap float32
	// QueryStarts and KeyStarts pack sequences of different lengths one after the other along the length axis of a
	// single batch. Sequence n has the rows of q from QueryStarts[n] to QueryStarts[n+1]−1, and the rows of k and v
	// from KeyStarts[n] to KeyStarts[n+1]−1. It may be empty. Both arrays are int32 with one element more than there
	// are sequences, and ascend from 0 to the length of q or k; or both are nil. A query sees only keys of its own
	// sequence, and Causal and Window count positions and lengths within it.
	//
	// Starts that do not ascend from 0 to the length are an error if they have been computed, have at most 65,536
	// elements and, on an NVIDIA GPU, were made by mlxc.FromSlice. Otherwise the results are unspecified.
	QueryStarts, KeyStarts *mlxc.Array
}

// Attention returns softmax(scale·q·kᵀ + mask)·v. Kernels of this project compute it and its gradient, except in the
// cases that are named below. Without a C++ compiler, on a CPU, MLX's operations compute both.
//
// The shapes are q [batch, heads, Lq, head_dim], k [batch, kvHeads, Lkv, head_dim], v [batch, kvHeads, Lkv, valueDim]
// and, for the result, [batch, heads, Lq, valueDim]. All have one dtype: float32, float16 or bfloat16. heads is a
// multiple of kvHeads, and neighboring query heads share a key head (Ainslie et al., "GQA", 2023, section 2.2).
// Arithmetic is float32, except for float32 matrix products on NVIDIA GPUs, which use TF32 as MLX's do (see
// [mlxc.TF32Enabled]).
//
// Let Z = scale·q·kᵀ, or c·tanh(scale·q·kᵀ/c) with a soft cap c. S is Z with the mask, lse = log Σ exp(S) over the keys
// of a row and its sink, P = exp(S − lse), and out = P·v. For a cotangent dout and delta = Σ dout·out over a row, the
// gradient is (Dao et al., "FlashAttention", 2022, appendix B.2):
//
//	dv = Pᵀ·dout
//	dS = P·(dout·vᵀ − delta), which is also the mask's gradient, summed over broadcast axes
//	dq = scale·dS'·k, dk = scale·dS'ᵀ·q, where dS' = dS·sech²(scale·q·kᵀ/c) with a soft cap, else dS
//	dsink = −Σ exp(sink − lse)·delta over the rows of a head
//
// The kernels compute delta as Σ P·(dout·vᵀ) if the mask or the sinks are float32, or if q is float32 and, on NVIDIA
// GPUs, heads are at most 16 wide. Otherwise they compute it from the rounded out, on CPUs also for a block of float32
// queries whose weights P are at most 1/8. A row that sees no key has the output 0 and no gradient. Gradients have the
// same bits in every run.
//
// Memory is linear in the lengths: the kernels recompute scores tile by tile. Heads wider than 256 are the exception:
// they run as basic MLX operations, which hold all scores. On GPUs, MLX's fused forward kernel computes the result if
// no gradient is being taken (see [mlxc.Differentiating]) and it supports the case: heads of 64, 80 or 128 with no
// options but Scale, Causal and Sinks. Its last bits may differ from those of the forward pass under a gradient.
func Attention(q, k, v *mlxc.Array, c AttentionConfig) *mlxc.Array {
	if !mlxc.Differentiating() && checkAttention(q, k, v, c) == nil && c.fusedByMLX(mlxc.CurrentBackend(), q, k, v) {
		fused := mlxc.AttentionConfig{Scale: c.Scale, Causal: c.Causal, Sinks: c.Sinks}
		return mlxc.ScaledDotProductAttention(q, k, v, fused)
	}
	out, _ := attention("ops.Attention", q, k, v, c, false)
	return out
}

// AttentionLogSumExp is [Attention] with a second result, lse: the logarithm of each row's sum of exponentials, float32
// of shape [batch, heads, Lq]. It includes the sink, and is −∞ if a row sees no key and has no sink. lse has a
// gradient: its cotangent dlse adds P·dlse to dS and Σ exp(sink − lse)·dlse to dsink. With lse, results over parts of
// the keys can be merged.
func AttentionLogSumExp(q, k, v *mlxc.Array, c AttentionConfig) (out, lse *mlxc.Array) {
	return attention("ops.AttentionLogSumExp", q, k, v, c, true)
}

// fusedByMLX reports whether MLX has a fused forward kernel for these arguments with the same semantics. For a row that
// sees no key, MLX's kernel returns the mean of all values and not 0.
func (c AttentionConfig) fusedByMLX(d mlxc.Backend, q, k, v *mlxc.Array) bool {
	hasOtherOptions := c.Window != nil || c.Mask != nil || c.SoftCap != 0 || c.QueryStarts != nil
	allSeeKeys := k.Dim(2) > 0 && (!c.Causal || q.Dim(2) <= k.Dim(2))
	width := q.Dim(3)
	return d != mlxc.BackendCPU && !hasOtherOptions && allSeeKeys &&
		(width == 64 || width == 80 || width == 128) && v.Dim(3) == width
}

// attention is the common part of Attention and AttentionLogSumExp. The second result is lse only if withLSE is set.
func attention(op string, q, k, v *mlxc.Array, c AttentionConfig, withLSE bool) (out, lse *mlxc.Array) {
	key, visible := c.key(withLSE), 1
	if withLSE {
		visible = 2
	}
	in := attentionInputs{q, k, v, c.Mask, c.Sinks, c.QueryStarts, c.KeyStarts}
	if c.QueryStarts == nil && c.KeyStarts == nil { // their elements need a check
		if results := recorded(key, in.list()...); len(results) == visible {
			return results[0], results[visible-1]
		}
	}
	if err := checkAttention(q, k, v, c); err != nil {
		err = opError(op, err, q, k, v, c.Mask, c.Sinks, c.QueryStarts, c.KeyStarts)
		return mlxc.InvalidArray(err), mlxc.InvalidArray(err)
	}
	c = c.withScale(q.Dim(-1))
	if c.Window != nil {
		c.Window = new(*c.Window) // the caller may change it before the gradient is taken
	}
	if q.Size() == 0 || k.Size() == 0 || max(q.Dim(3), v.Dim(3)) > widestHead || !kernelsAvailable(op) {
		out, lse = attentionMLX(q, k, v, c)
		if !withLSE {
			lse.Free()
		}
		return out, lse
	}
	if d, dv := q.Dim(3), v.Dim(3); d%8 != 0 || dv%8 != 0 {
		// Columns of zeros change no product.
		mlxc.WithScope(func() {
			out, lse = attention(op, padHeadDimTo8(q), padHeadDimTo8(k), padHeadDimTo8(v), c, withLSE)
			out = out.Slice([]int{0, 0, 0, 0}, append(q.Shape()[:3], dv), nil).Keep()
			if withLSE {
				lse.Keep()
			}
		})
		return out, lse
	}
	results := withHidden(visible, key, in.list(),
		func(args []*mlxc.Array) []*mlxc.Array {
			out, statistics := attentionForward(currentTarget(), attentionInputsFrom(args), c)
			if !withLSE {
				return []*mlxc.Array{out, statistics}
			}
			return []*mlxc.Array{out, logSumExp(statistics), statistics}
		},
		func(args, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			in, out, statistics := attentionInputsFrom(args), outputs[0], outputs[visible]
			var dLSE *mlxc.Array
			if withLSE {
				dLSE = cotangents[1]
			}
			return attentionBackward(currentTarget(), in, out, statistics, cotangents[0], dLSE, c)
		})
	if len(results) < visible { // an error is a single array
		return results[0], results[0]
	}
	return results[0], results[visible-1]
}

// An attentionKey identifies the graphs of an attention. See withGradient.
type attentionKey struct {
	scale, softCap    float32
	causal, hasWindow bool
	window            Window
	withLSE           bool
}

func (c AttentionConfig) key(withLSE bool) attentionKey {
	k := attentionKey{
		scale: c.Scale, softCap: c.SoftCap, causal: c.Causal, hasWindow: c.Window != nil, withLSE: withLSE,
	}
	if c.Window != nil {
		k.window = *c.Window
	}
	return k
}

// widestHead is the largest head_dim and valueDim of the kernels.
const widestHead = 256

// padHeadDimTo8 appends columns of zeros up to a multiple of 8.
func padHeadDimTo8(x *mlxc.Array) *mlxc.Array {
	shape, padded := x.Shape(), x.Shape()
	padded[3] = (shape[3] + 7) / 8 * 8
	return mlxc.Zeros(x.DType(), padded...).SliceUpdate(x, []int{0, 0, 0, 0}, shape, nil)
}

// withScale replaces a Scale of 0 by head_dim^−½.
func (c AttentionConfig) withScale(headDim int) AttentionConfig {
	if c.Scale == 0 {
		c.Scale = float32(1 / math.Sqrt(float64(headDim)))
	}
	return c
}

// CausalAttention is causal [Attention] of heads that lie side by side in rows, the layout of projections. q has the
// shape [Lq, heads·head_dim], k [Lkv, kvHeads·head_dim] and v [Lkv, kvHeads·valueDim]; the result has the shape
// [Lq, heads·valueDim]. With a leading batch axis in q, k and v, the result has it too. The scale is head_dim^−½. The
// dtypes are the same as for Attention.
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
	out, _ := attention(op, split(q, heads), split(k, kvHeads), split(v, kvHeads), AttentionConfig{Causal: true}, false)
	if out.Err() != nil {
		return out
	}
	shape := q.Shape()
	shape[len(shape)-1] = heads * out.Dim(-1)
	return out.Transpose(0, 2, 1, 3).Reshape(shape...)
}

// checkHeadsInRows returns an error if the rows of CausalAttention's arguments cannot be split into heads.
func checkHeadsInRows(q, k, v *mlxc.Array, heads, kvHeads int) error {
	for _, x := range []struct {
		name, count string
		array       *mlxc.Array
		heads       int
	}{{"q", "heads", q, heads}, {"k", "kvHeads", k, kvHeads}, {"v", "kvHeads", v, kvHeads}} {
		if err := requireArray(x.name, x.array); err != nil {
			return err
		}
		switch n := x.array.NDim(); {
		case n != 2 && n != 3:
			return fmt.Errorf(
				"%s has the shape %v; it must be [length, heads·head_dim] or [batch, length, heads·head_dim]",
				x.name, x.array.Shape())
		case n != q.NDim():
			return fmt.Errorf("q has %d axes and %s has %d; they must have the same number", q.NDim(), x.name, n)
		case x.heads < 1:
			return fmt.Errorf("%s is %d; it must be at least 1", x.count, x.heads)
		case x.array.Dim(-1)%x.heads != 0:
			return fmt.Errorf("%s has rows of %d elements; the row length must be a multiple of %s, %d",
				x.name, x.array.Dim(-1), x.count, x.heads)
		}
	}
	return nil
}
