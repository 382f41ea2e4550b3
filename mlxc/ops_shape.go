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
static mlxg_result contiguous(void* a) {
  MLXG_CALL(mlx_contiguous(&res, (mlx_array){a}, false, mlxg_stream()));
}
static mlxg_result full(const int* shape, size_t n, void* value, int dtype) {
  MLXG_CALL(mlx_full(&res, shape, n, (mlx_array){value}, (mlx_dtype)dtype, mlxg_stream()));
}
static mlxg_result arange(double start, double stop, double step, int dtype) {
  MLXG_CALL(mlx_arange(&res, start, stop, step, (mlx_dtype)dtype, mlxg_stream()));
}
static mlxg_result joined(
    int (*f)(mlx_array*, const mlx_vector_array, int, const mlx_stream), void** a, size_t n, int axis) {
  mlx_array res = {0};
  mlxg_lock();
  mlx_vector_array v = mlx_vector_array_new_data((mlx_array*)a, n);
  mlxg_result out = mlxg_end(f(&res, v, axis, mlxg_stream()), res);
  mlx_vector_array_free(v);
  mlxg_unlock();
  return out;
}
static mlxg_result concatenate(void** a, size_t n, int axis) {
  return joined(mlx_concatenate_axis, a, n, axis);
}
static mlxg_result stack(void** a, size_t n, int axis) {
  return joined(mlx_stack_axis, a, n, axis);
}
static mlxg_results split_equal(void* a, int n, int axis) {
  MLXG_CALL_ALL(mlx_split(&res, (mlx_array){a}, n, axis, mlxg_stream()));
}
static mlxg_results split_at(void* a, const int* at, size_t n, int axis) {
  MLXG_CALL_ALL(mlx_split_sections(&res, (mlx_array){a}, at, n, axis, mlxg_stream()));
}
static mlxg_result flatten(void* a, int first, int last) {
  MLXG_CALL(mlx_flatten(&res, (mlx_array){a}, first, last, mlxg_stream()));
}
static mlxg_result swapaxes(void* a, int i, int j) {
  MLXG_CALL(mlx_swapaxes(&res, (mlx_array){a}, i, j, mlxg_stream()));
}
static mlxg_result tile(void* a, const int* reps, size_t n) {
  MLXG_CALL(mlx_tile(&res, (mlx_array){a}, reps, n, mlxg_stream()));
}
static mlxg_result repeat(void* a, int n, int axis) {
  MLXG_CALL(mlx_repeat_axis(&res, (mlx_array){a}, n, axis, mlxg_stream()));
}
#endif
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
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

// SwapAxes exchanges two axes without a copy.
func (a *Array) SwapAxes(i, j int) *Array {
	return a.withInts("swapaxes", []int{i, j}, func(ctx unsafe.Pointer, v *C.int, n C.size_t) C.mlxg_result {
		axes := unsafe.Slice(v, n)
		return C.swapaxes(ctx, axes[0], axes[1])
	})
}

// Flatten makes one axis of the axes first to last, both included.
func (a *Array) Flatten(first, last int) *Array {
	return a.withInts("flatten", []int{first, last}, func(ctx unsafe.Pointer, v *C.int, n C.size_t) C.mlxg_result {
		axes := unsafe.Slice(v, n)
		return C.flatten(ctx, axes[0], axes[1])
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

// Tile puts the whole array reps times behind itself along every axis; the last
// entry of reps is for the last axis. Missing entries and missing axes count as 1.
func (a *Array) Tile(reps ...int) *Array {
	const op = "tile"
	if a.Err() == nil {
		shape := a.Shape()
		for len(shape) < len(reps) {
			shape = slices.Insert(shape, 0, 1)
		}
		for i, n := range reps {
			if err := repeated(shape, len(shape)-len(reps)+i, n, a.DType()); err != nil {
				return invalid(opError(op, err, a))
			}
		}
	}
	return a.withInts(op, reps, func(ctx unsafe.Pointer, v *C.int, n C.size_t) C.mlxg_result {
		return C.tile(ctx, v, n)
	})
}

// Repeat puts every element n times behind itself along the axis.
func (a *Array) Repeat(n, axis int) *Array {
	const op = "repeat"
	if a.Err() == nil {
		i, err := a.axis(axis)
		if err == nil {
			err = repeated(a.Shape(), i, n, a.DType())
		}
		if err != nil {
			return invalid(opError(op, err, a))
		}
	}
	return a.withInts(op, []int{n, axis}, func(ctx unsafe.Pointer, v *C.int, k C.size_t) C.mlxg_result {
		args := unsafe.Slice(v, k)
		return C.repeat(ctx, args[0], args[1])
	})
}

// repeated makes the axis of the shape n times as long, if memory can hold that.
func repeated(shape []int, axis, n int, d DType) error {
	if n < 0 {
		return fmt.Errorf("%d repetitions: there must be 0 or more", n)
	}
	if n > math.MaxInt32 {
		return fmt.Errorf("%d repetitions are beyond MLX's 32 bits", n)
	}
	shape[axis] *= n // of two 32-bit numbers: no overflow
	return checkNew(d, shape)
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
	return alongAxis("concatenate", axis, func(h handles, axis C.int) C.mlxg_result {
		return C.concatenate(h.ptr(), h.n(), axis)
	}, arrays...)
}

// Stack joins arrays of one shape along a new axis, at the given place of the result.
func Stack(axis int, arrays ...*Array) *Array {
	return alongAxis("stack", axis, func(h handles, axis C.int) C.mlxg_result {
		return C.stack(h.ptr(), h.n(), axis)
	}, arrays...)
}

// Split cuts the axis into n equal parts, without a copy. If it fails, the parts
// carry the error; there are as many as were asked for, but at most 1024.
func (a *Array) Split(n, axis int) []*Array {
	const op = "split"
	if n < 1 {
		return failed(1, opError(op, fmt.Errorf("%d parts: there must be 1 or more", n), a))
	}
	return a.parts(op, n, []int{n, axis}, func(ctx unsafe.Pointer, v []C.int) C.mlxg_results {
		return C.split_equal(ctx, v[0], v[1])
	})
}

// SplitAt cuts the axis before each of the positions, which ascend, without a copy.
// There is one part more than positions. If it fails, the parts carry the error.
func (a *Array) SplitAt(axis int, positions ...int) []*Array {
	const op = "split"
	n := len(positions)
	if a.Err() == nil {
		size := a.Dim(axis)
		_, err := a.axis(axis)
		if err == nil && !slices.IsSorted(slices.Concat([]int{0}, positions, []int{size})) {
			err = fmt.Errorf("the positions %v do not ascend between 0 and %d, the size of axis %d", positions, size, axis)
		}
		if err != nil {
			return failed(n+1, opError(op, err, a))
		}
	}
	return a.parts(op, n+1, append(slices.Clone(positions), axis), func(ctx unsafe.Pointer, v []C.int) C.mlxg_results {
		return C.split_at(ctx, &v[0], C.size_t(n), v[n])
	})
}

// parts makes a call that gives n arrays.
func (a *Array) parts(op string, n int, args []int, f func(ctx unsafe.Pointer, args []C.int) C.mlxg_results) []*Array {
	n = min(n, 1024) // a wrong number of parts may be any number
	ctx, err := a.acquire()
	if err != nil {
		return failed(n, operandError(op, err, 0, a))
	}
	defer a.release()
	c, err := cInts(args)
	if err != nil {
		return failed(n, opError(op, err, a))
	}
	out, err := wrapAll(op, f(ctx, c), a)
	if err != nil {
		return failed(n, err)
	}
	return out
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
