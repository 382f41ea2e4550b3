package mlxc

import (
	"errors"
	"math"
)

// RMSNorm is MLX's fused root-mean-square norm over the last axis, x·rsqrt(mean(x²)+eps)·weight, computed in float32 or
// higher precision. x has shape (…,D) and weight (D); nil stands for ones. The result has x's shape and the promoted
// dtype of x and weight. It has a gradient; see also RMSNorm of package ops.
func RMSNorm(x, weight *Array, eps float32) *Array {
	return mlxFastRmsNorm(x, weight, eps)
}

// LayerNorm is MLX's fused layer norm over the last axis, (x−mean(x))·rsqrt(var(x)+eps)·weight + bias. x has shape
// (…,D), weight and bias (D); nil stands for ones and zeros. The result has x's shape and the promoted dtype of the
// operands, or x's dtype if weight is nil. It has a gradient; see also LayerNorm of package ops.
func LayerNorm(x, weight, bias *Array, eps float32) *Array {
	return mlxFastLayerNorm(x, weight, bias, eps)
}

// AttentionConfig holds the options of attention. The zero value is full attention with scale head_dim^−½.
type AttentionConfig struct {
	Scale  float32 // factor of the scores; 0 for head_dim^−½
	Causal bool    // a query attends to no later key; the last query is aligned with the last key
	// Mask is broadcast to (batch, heads, queries, keys). A boolean mask is true where a query attends to a key; other
	// dtypes are added to the scores. It cannot be combined with Causal.
	Mask *Array
	// Sinks, of shape (heads), is an additional score in the denominator of each row's softmax, without a value; nil
	// for none.
	Sinks *Array
}

// ScaledDotProductAttention is MLX's fused attention, softmax(scale·q·kᵀ + mask)·v. q has shape (batch, heads, queries,
// head_dim); k has (batch, kv_heads, keys, head_dim), and v (batch, kv_heads, keys, value_dim). heads is a multiple of
// kv_heads, and consecutive query heads share a key head. The softmax is computed in float32. The result has shape
// (batch, heads, queries, value_dim) and the promoted dtype of q, k and v. It has a gradient; see also Attention of
// package ops.
func ScaledDotProductAttention(q, k, v *Array, c AttentionConfig) *Array {
	const op = "scaled_dot_product_attention"
	switch {
	case c.Causal && c.Mask != nil:
		err := errors.New("Causal and Mask exclude each other: include the causal triangle in Mask")
		return invalid(opError(op, err, q, k, v, c.Mask))
	case k.NDim() == 4 && k.Dim(1) == 0: // fault attention-without-key-heads
		return invalid(opError(op, errors.New("kv_heads is 0: it must be at least 1"), q, k, v))
	}
	if c.Scale == 0 {
		c.Scale = float32(1 / math.Sqrt(float64(q.Dim(-1))))
	}
	maskMode := ""
	switch {
	case c.Causal:
		maskMode = "causal"
	case c.Mask != nil:
		maskMode = "array"
	}
	const forceFused = false
	return mlxFastScaledDotProductAttention(q, k, v, c.Scale, maskMode, c.Mask, c.Sinks, forceFused)
}

// CrossEntropy is MLX's fused cross-entropy logsumexp(logits) − logits[target] for logits of shape (…,V) and class ids
// of shape (…). The result is float32 of shape (…). It has a gradient; see also CrossEntropy of package ops.
// Targets are in 0 … V-1; targets out of range are handled like ids in Take.
func CrossEntropy(logits, targets *Array) *Array {
	last := -1
	if logits.NDim() > 0 {
		last = logits.Dim(-1) - 1
	}
	limited, free, err := limitIDs(targets, 0, last)
	if err != nil {
		return invalid(opError("cross_entropy", err, logits, targets))
	}
	defer free()
	return mlxFastCrossEntropy(logits, limited)
}
