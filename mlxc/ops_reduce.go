package mlxc

/*
#include "mlxg.h"

#ifndef MLXG_NOT_SET_UP
static mlxg_result argmax(void* a, int axis) {
  MLXG_CALL(mlx_argmax_axis(&res, (mlx_array){a}, axis, false, mlxg_stream()));
}
static mlxg_result cumsum(void* a, int axis) {
  mlx_optional_dtype own = {0};
  MLXG_CALL(mlx_cumsum_axis(&res, (mlx_array){a}, axis, false, true, own, mlxg_stream()));
}
#endif
*/
import "C"

import "unsafe"

// Reductions take the axes away that they work over.

// Sum adds up over the axes, or over all if none are given.
func (a *Array) Sum(axes ...int) *Array {
	return reduce("sum", C.mlxg_axes_fn(C.mlx_sum_axes), a, axes)
}

// Mean averages over the axes, or over all if none are given.
func (a *Array) Mean(axes ...int) *Array {
	return reduce("mean", C.mlxg_axes_fn(C.mlx_mean_axes), a, axes)
}

// Max gives the largest element over the axes, or over all if none are given.
func (a *Array) Max(axes ...int) *Array {
	return reduce("max", C.mlxg_axes_fn(C.mlx_max_axes), a, axes)
}

// Min gives the smallest element over the axes, or over all if none are given.
func (a *Array) Min(axes ...int) *Array {
	return reduce("min", C.mlxg_axes_fn(C.mlx_min_axes), a, axes)
}

// Prod multiplies over the axes, or over all if none are given.
func (a *Array) Prod(axes ...int) *Array {
	return reduce("prod", C.mlxg_axes_fn(C.mlx_prod_axes), a, axes)
}

// All reports whether every element over the axes, or over all if none are given, is
// true, which is: not 0. It is true of no elements.
func (a *Array) All(axes ...int) *Array {
	return reduce("all", C.mlxg_axes_fn(C.mlx_all_axes), a, axes)
}

// Any reports whether some element over the axes, or over all if none are given, is
// true, which is: not 0. It is false of no elements.
func (a *Array) Any(axes ...int) *Array {
	return reduce("any", C.mlxg_axes_fn(C.mlx_any_axes), a, axes)
}

// LogSumExp returns ln Σ eᵃ over the axes, or over all if none are given, without
// overflow: the largest element is subtracted first.
func (a *Array) LogSumExp(axes ...int) *Array {
	return reduce("logsumexp", C.mlxg_axes_fn(C.mlx_logsumexp_axes), a, axes)
}

// ArgMax returns the position of the largest element along the axis, as uint32; the
// first one of equals.
func (a *Array) ArgMax(axis int) *Array {
	return a.withInts("argmax", []int{axis}, func(ctx unsafe.Pointer, axis *C.int, _ C.size_t) C.mlxg_result {
		return C.argmax(ctx, *axis)
	})
}

// Softmax returns eᵃ / Σ eᵃ, the sum being over the axes, or over all if none are
// given. The result has a's shape, and a's dtype if that is a floating-point one, else
// float32. MLX computes in that dtype; SoftmaxPrecise does not.
func (a *Array) Softmax(axes ...int) *Array {
	return overAxes("softmax", C.mlxg_axes_fn(C.mlx_softmax_axes), a, axes, false)
}

// SoftmaxPrecise is Softmax computed in float32 where a's dtype is a half one. The
// result has a's dtype all the same.
func (a *Array) SoftmaxPrecise(axes ...int) *Array {
	return overAxes("softmax", C.mlxg_axes_fn(C.mlx_softmax_axes), a, axes, true)
}

// CumSum returns the sums of the elements up to and with each one, along the axis.
func (a *Array) CumSum(axis int) *Array {
	return a.withInts("cumsum", []int{axis}, func(ctx unsafe.Pointer, axis *C.int, _ C.size_t) C.mlxg_result {
		return C.cumsum(ctx, *axis)
	}).orNothing()
}
