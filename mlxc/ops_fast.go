package mlxc

import (
	"errors"
	"math"
)

// RMSNorm is MLX's fast root-mean-square norm over the last axis,
// x·rsqrt(mean(x²)+eps)·weight, computed in float32 at least. weight has shape
// (D) for x of shape (…,D); nil stands for ones. The result has x's shape, and
// the dtype of x and weight together. Its gradient is MLX's own.
func RMSNorm(x, weight *Array, eps float32) *Array {
	return mlxFastRmsNorm(x, weight, eps)
}

// LayerNorm is MLX's fast layer norm over the last axis,
// (x−mean(x))·rsqrt(var(x)+eps)·weight + bias. weight and bias have shape (D) for
// x of shape (…,D); nil stands for ones and zeros. Its gradient is MLX's own.
func LayerNorm(x, weight, bias *Array, eps float32) *Array {
	return mlxFastLayerNorm(x, weight, bias, eps)
}

// AttentionConfig says what attention computes beyond its operands. The zero value is
// plain attention: every query sees every key, scaled by head_dim^−½.
type AttentionConfig struct {
	Scale  float32 // of the scores; 0 stands for head_dim^−½
	Causal bool    // a query sees no later key; the last query is aligned with the last key
	// Mask is broadcast to (batch, heads, queries, keys). Booleans say what is seen;
	// other dtypes are added to the scores. nil masks nothing; Causal allows no other.
	Mask *Array
	// Sinks, of shape (heads), are one more score in each row's sum that has no value;
	// nil for none.
	Sinks *Array
}

// ScaledDotProductAttention is MLX's fast attention, softmax(scale·q·kᵀ + mask)·v. q has
// the shape (batch, heads, queries, head_dim), k and v have (batch, kv_heads, keys,
// head_dim), v's last axis perhaps another size; heads is a multiple of kv_heads, and
// neighbouring query heads share a key head. The softmax is computed in float32. The
// result has the shape of q, with v's last axis. Its gradient is MLX's own.
func ScaledDotProductAttention(q, k, v *Array, c AttentionConfig) *Array {
	const op = "scaled_dot_product_attention"
	switch {
	case c.Causal && c.Mask != nil:
		return invalid(opError(op, errors.New("it is either causal or has a mask: put the triangle into the mask"), q, k, v, c.Mask))
	case k.NDim() == 4 && k.Dim(1) == 0: // MLX divides by their number
		return invalid(opError(op, errors.New("there are no key heads"), q, k, v))
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

// CrossEntropy is MLX's fast cross-entropy of logits of shape (…,V) and class numbers
// of shape (…): logsumexp(logits) − logits[target], for every row, as float32. Its
// gradient is MLX's own. Targets are in 0 … V-1; those out of range are treated as ids in Take.
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
