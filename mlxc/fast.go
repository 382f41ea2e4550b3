package mlxc

/*
#include "mlxg.h"

#ifndef MLXG_NOT_SET_UP
static mlxg_result rms_norm(void* x, void* w, float eps) {
  MLXG_CALL(mlx_fast_rms_norm(&res, (mlx_array){x}, (mlx_array){w}, eps, mlxg_stream()));
}
static mlxg_result layer_norm(void* x, void* w, void* b, float eps) {
  MLXG_CALL(mlx_fast_layer_norm(&res, (mlx_array){x}, (mlx_array){w}, (mlx_array){b}, eps, mlxg_stream()));
}
static mlxg_result attention(void** qkv, float scale, bool causal, void* mask, void* sinks) {
  const char* mask_mode = causal ? "causal" : mask ? "array" : "";
  const bool force_fused = false;
  MLXG_CALL(mlx_fast_scaled_dot_product_attention(
      &res, (mlx_array){qkv[0]}, (mlx_array){qkv[1]}, (mlx_array){qkv[2]}, scale, mask_mode,
      (mlx_array){mask}, (mlx_array){sinks}, force_fused, mlxg_stream()));
}
#endif
*/
import "C"

import (
	"errors"
	"math"
	"unsafe"
)

// optional holds an array that may be nil, for which the handle is nil.
func optional(op string, a *Array) (unsafe.Pointer, func(), error) {
	if a == nil {
		return nil, func() {}, nil
	}
	ctx, err := a.acquire()
	if err != nil {
		return nil, nil, operandError(op, err, 0, a)
	}
	return ctx, a.release, nil
}

// RMSNorm is MLX's fast root-mean-square norm over the last axis,
// x·rsqrt(mean(x²)+eps)·weight, computed in float32 at least. weight has shape
// (D) for x of shape (…,D); nil stands for ones. The result has x's shape, and
// the dtype of x and weight together. Its gradient is MLX's own.
func RMSNorm(x, weight *Array, eps float32) *Array {
	const op = "RMSNorm"
	cx, err := x.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, x))
	}
	defer x.release()
	cw, done, err := optional(op, weight)
	if err != nil {
		return invalid(err)
	}
	defer done()
	return wrap(op, C.rms_norm(cx, cw, C.float(eps)), x, weight)
}

// LayerNorm is MLX's fast layer norm over the last axis,
// (x−mean(x))·rsqrt(var(x)+eps)·weight + bias. weight and bias have shape (D) for
// x of shape (…,D); nil stands for ones and zeros. Its gradient is MLX's own.
func LayerNorm(x, weight, bias *Array, eps float32) *Array {
	const op = "LayerNorm"
	cx, err := x.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, x))
	}
	defer x.release()
	cw, doneW, err := optional(op, weight)
	if err != nil {
		return invalid(err)
	}
	defer doneW()
	cb, doneB, err := optional(op, bias)
	if err != nil {
		return invalid(err)
	}
	defer doneB()
	return wrap(op, C.layer_norm(cx, cw, cb, C.float(eps)), x, weight, bias)
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
	const op = "ScaledDotProductAttention"
	h, err := acquireAll(op, []*Array{q, k, v})
	if err != nil {
		return invalid(err)
	}
	defer h.release()
	mask, doneMask, err := optional(op, c.Mask)
	if err != nil {
		return invalid(err)
	}
	defer doneMask()
	sinks, doneSinks, err := optional(op, c.Sinks)
	if err != nil {
		return invalid(err)
	}
	defer doneSinks()
	switch {
	case c.Causal && c.Mask != nil:
		return invalid(opError(op, errors.New("it is either causal or has a mask: put the triangle into the mask"), q, k, v, c.Mask))
	case k.NDim() == 4 && k.Dim(1) == 0: // MLX divides by their number
		return invalid(opError(op, errors.New("there are no key heads"), q, k, v))
	}
	if c.Scale == 0 {
		c.Scale = float32(1 / math.Sqrt(float64(q.Dim(-1))))
	}
	return wrap(op, C.attention(h.ptr(), C.float(c.Scale), C.bool(c.Causal), mask, sinks), q, k, v, c.Mask, c.Sinks)
}

// CrossEntropy is MLX's fast cross-entropy of logits of shape (…,V) and class numbers
// of shape (…): logsumexp(logits) − logits[target], for every row, as float32. Its
// gradient is MLX's own. Targets beyond V are not checked.
func CrossEntropy(logits, targets *Array) *Array {
	return binary("CrossEntropy", C.mlxg_binary_fn(C.mlx_fast_cross_entropy), logits, targets)
}
