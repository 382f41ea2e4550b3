package mlxc

/*
#include "mlxg.h"

#ifndef MLXG_NOT_SET_UP
static mlxg_result astype(void* a, int dtype) {
  MLXG_CALL(mlx_astype(&res, (mlx_array){a}, (mlx_dtype)dtype, mlxg_stream()));
}
static mlxg_result reshape(void* a, const int* shape, size_t n) {
  MLXG_CALL(mlx_reshape(&res, (mlx_array){a}, shape, n, mlxg_stream()));
}
static mlxg_result broadcast_to(void* a, const int* shape, size_t n) {
  MLXG_CALL(mlx_broadcast_to(&res, (mlx_array){a}, shape, n, mlxg_stream()));
}
static mlxg_result transpose(void* a, const int* axes, size_t n) {
  MLXG_CALL(mlx_transpose_axes(&res, (mlx_array){a}, axes, n, mlxg_stream()));
}
static mlxg_result expand_dims(void* a, const int* axes, size_t n) {
  MLXG_CALL(mlx_expand_dims_axes(&res, (mlx_array){a}, axes, n, mlxg_stream()));
}
static mlxg_result squeeze(void* a, const int* axes, size_t n) {
  MLXG_CALL(mlx_squeeze_axes(&res, (mlx_array){a}, axes, n, mlxg_stream()));
}
static mlxg_result slice(void* a, const int* start, const int* stop, const int* strides, size_t n) {
  MLXG_CALL(mlx_slice(&res, (mlx_array){a}, start, n, stop, n, strides, n, mlxg_stream()));
}
static mlxg_result contiguous(void* a) {
  MLXG_CALL(mlx_contiguous(&res, (mlx_array){a}, false, mlxg_stream()));
}
static mlxg_result full(const int* shape, size_t n, void* value, int dtype) {
  MLXG_CALL(mlx_full(&res, shape, n, (mlx_array){value}, (mlx_dtype)dtype, mlxg_stream()));
}
static mlxg_result arange(double start, double stop, double step, int dtype) {
  MLXG_CALL(mlx_arange(&res, start, stop, step, (mlx_dtype)dtype, mlxg_stream()));
}
static mlxg_result concatenate(void** a, size_t n, int axis) {
  mlx_array res = {0};
  mlxg_lock();
  mlx_vector_array v = mlx_vector_array_new_data((mlx_array*)a, n);
  mlxg_result out = mlxg_end(mlx_concatenate_axis(&res, v, axis, mlxg_stream()), res);
  mlx_vector_array_free(v);
  mlxg_unlock();
  return out;
}
#endif
*/
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"
)

// withInts is the shape of an operation that takes a list of sizes or axes.
func (a *Array) withInts(op string, v []int, f func(ctx unsafe.Pointer, v *C.int, n C.size_t) C.mlxg_result) *Array {
	ctx, err := a.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, a))
	}
	defer a.release()
	c, err := cInts(v)
	if err != nil {
		return invalid(opError(op, err, a))
	}
	return wrap(op, f(ctx, &c[0], C.size_t(len(v))), a)
}

// AsType converts the elements.
func (a *Array) AsType(d DType) *Array {
	const op = "astype"
	ctx, err := a.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, a))
	}
	defer a.release()
	if !d.valid() {
		return invalid(opError(op, errors.New("the dtype is invalid"), a))
	}
	return wrap(op, C.astype(ctx, C.int(d.c())), a)
}

// Reshape gives the elements, in row-major order, another shape of the same size.
// One axis may be −1: it is computed.
func (a *Array) Reshape(shape ...int) *Array {
	return a.withInts("reshape", shape, func(ctx unsafe.Pointer, v *C.int, n C.size_t) C.mlxg_result {
		return C.reshape(ctx, v, n)
	})
}

// BroadcastTo repeats axes of size 1, and adds axes in front, without a copy.
func (a *Array) BroadcastTo(shape ...int) *Array {
	if a.Err() == nil {
		if err := checkNew(a.DType(), shape); err != nil {
			return invalid(opError("broadcast_to", err, a))
		}
	}
	return a.withInts("broadcast_to", shape, func(ctx unsafe.Pointer, v *C.int, n C.size_t) C.mlxg_result {
		return C.broadcast_to(ctx, v, n)
	})
}

// Transpose permutes the axes without a copy; without arguments it reverses them.
func (a *Array) Transpose(axes ...int) *Array {
	if len(axes) == 0 {
		axes = nil // not the caller's buffer
		for i := a.NDim() - 1; i >= 0; i-- {
			axes = append(axes, i)
		}
	}
	return a.withInts("transpose", axes, func(ctx unsafe.Pointer, v *C.int, n C.size_t) C.mlxg_result {
		return C.transpose(ctx, v, n)
	})
}

// ExpandDims adds axes of size 1 at the given places of the result.
func (a *Array) ExpandDims(axes ...int) *Array {
	return a.withInts("expand_dims", axes, func(ctx unsafe.Pointer, v *C.int, n C.size_t) C.mlxg_result {
		return C.expand_dims(ctx, v, n)
	})
}

// Squeeze removes the given axes, which must have size 1; all of size 1 if none
// are given.
func (a *Array) Squeeze(axes ...int) *Array {
	if len(axes) == 0 {
		axes = nil // not the caller's buffer
		for i, n := range a.Shape() {
			if n == 1 {
				axes = append(axes, i)
			}
		}
	}
	return a.withInts("squeeze", axes, func(ctx unsafe.Pointer, v *C.int, n C.size_t) C.mlxg_result {
		return C.squeeze(ctx, v, n)
	})
}

// Slice takes the elements start, start+stride, … below stop of every axis,
// without a copy. All three lists have one entry for every axis; a nil strides
// stands for ones. Negative positions count from the end, as in MLX.
func (a *Array) Slice(start, stop, strides []int) *Array {
	const op = "slice"
	ctx, err := a.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, a))
	}
	defer a.release()
	if strides == nil {
		strides = slices.Repeat([]int{1}, len(start))
	}
	if n := a.NDim(); len(start) != n || len(stop) != n || len(strides) != n {
		return invalid(opError(op, fmt.Errorf("start, stop and strides have %d, %d and %d entries, want %d",
			len(start), len(stop), len(strides), n), a))
	}
	if slices.Contains(strides, 0) {
		return invalid(opError(op, errors.New("a stride is 0"), a))
	}
	s, err1 := cInts(start)
	e, err2 := cInts(stop)
	t, err3 := cInts(strides)
	if err := errors.Join(err1, err2, err3); err != nil {
		return invalid(opError(op, err, a))
	}
	return wrap(op, C.slice(ctx, &s[0], &e[0], &t[0], C.size_t(len(start))), a)
}

// Contiguous returns the array in row-major order, copied only if it is not.
func (a *Array) Contiguous() *Array {
	const op = "contiguous"
	ctx, err := a.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, a))
	}
	defer a.release()
	return wrap(op, C.contiguous(ctx), a)
}

// Concatenate joins arrays along an axis.
func Concatenate(axis int, arrays ...*Array) *Array {
	const op = "concatenate"
	h, err := acquireAll(op, arrays)
	if err != nil {
		return invalid(err)
	}
	defer h.release()
	c, err := cInts([]int{axis})
	if err != nil {
		return invalid(opError(op, err, arrays...))
	}
	return wrap(op, C.concatenate(h.ptr(), h.n(), c[0]), arrays...)
}

// Full makes an array with all elements equal to value, a scalar, in dtype d.
func Full(d DType, value *Array, shape ...int) *Array {
	const op = "full"
	ctx, err := value.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, value))
	}
	defer value.release()
	if err := checkNew(d, shape); err != nil {
		return invalid(&Error{Op: op, Err: err})
	}
	c := cShape(shape)
	return wrap(op, C.full(&c[0], C.size_t(len(shape)), ctx, C.int(d.c())))
}

// Zeros makes an array of zeros.
func Zeros(d DType, shape ...int) *Array {
	zero := Scalar(float32(0))
	defer zero.Free()
	return Full(d, zero, shape...)
}

// Ones makes an array of ones.
func Ones(d DType, shape ...int) *Array {
	one := Scalar(float32(1))
	defer one.Free()
	return Full(d, one, shape...)
}

// Arange makes the one-dimensional array start, start+step, … below stop.
func Arange(d DType, start, stop, step float64) *Array {
	const op = "arange"
	if initError != nil {
		return invalid(&Error{Op: op, Err: initError})
	}
	if err := checkNew(d, nil); err != nil {
		return invalid(&Error{Op: op, Err: err})
	}
	return wrap(op, C.arange(C.double(start), C.double(stop), C.double(step), C.int(d.c())))
}
