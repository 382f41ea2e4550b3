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
#endif
*/
import "C"

import "unsafe"

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
