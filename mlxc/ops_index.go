package mlxc

/*
#include "mlxg.h"

#ifndef MLXG_NOT_SET_UP
static mlxg_result slice(void* a, const int* start, const int* stop, const int* strides, size_t n) {
  MLXG_CALL(mlx_slice(&res, (mlx_array){a}, start, n, stop, n, strides, n, mlxg_stream()));
}
static mlxg_result slice_update(
    void* a, void* update, const int* start, const int* stop, const int* strides, size_t n) {
  MLXG_CALL(mlx_slice_update(
      &res, (mlx_array){a}, (mlx_array){update}, start, n, stop, n, strides, n, mlxg_stream()));
}
static mlxg_result take(void** a, int axis) {
  MLXG_CALL(mlx_take_axis(&res, (mlx_array){a[0]}, (mlx_array){a[1]}, axis, mlxg_stream()));
}
static mlxg_result take_along_axis(void** a, int axis) {
  MLXG_CALL(mlx_take_along_axis(&res, (mlx_array){a[0]}, (mlx_array){a[1]}, axis, mlxg_stream()));
}
static mlxg_result scatter_add(void** a, int axis) {
  MLXG_CALL(mlx_scatter_add_single(
      &res, (mlx_array){a[0]}, (mlx_array){a[1]}, (mlx_array){a[2]}, axis, mlxg_stream()));
}
static mlxg_result scatter_add_axis(void** a, int axis) {
  MLXG_CALL(mlx_scatter_add_axis(
      &res, (mlx_array){a[0]}, (mlx_array){a[1]}, (mlx_array){a[2]}, axis, mlxg_stream()));
}
static mlxg_result sort_axis(void* a, int axis) {
  MLXG_CALL(mlx_sort_axis(&res, (mlx_array){a}, axis, mlxg_stream()));
}
static mlxg_result argsort_axis(void* a, int axis) {
  MLXG_CALL(mlx_argsort_axis(&res, (mlx_array){a}, axis, mlxg_stream()));
}
static mlxg_result tril(void* a, int k) {
  MLXG_CALL(mlx_tril(&res, (mlx_array){a}, k, mlxg_stream()));
}
static mlxg_result triu(void* a, int k) {
  MLXG_CALL(mlx_triu(&res, (mlx_array){a}, k, mlxg_stream()));
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
	w, err := newWindow(a, start, stop, strides)
	if err != nil {
		return invalid(opError(op, err, a))
	}
	return wrap(op, C.slice(ctx, &w.start[0], &w.stop[0], &w.strides[0], w.n), a)
}

// SliceUpdate returns a copy of a in which update stands at the elements that Slice
// takes. update is broadcast to their shape and converted to a's dtype.
func (a *Array) SliceUpdate(update *Array, start, stop, strides []int) *Array {
	const op = "slice_update"
	h, err := acquireAll(op, []*Array{a, update})
	if err != nil {
		return invalid(err)
	}
	defer h.release()
	w, err := newWindow(a, start, stop, strides)
	if err != nil {
		return invalid(opError(op, err, a, update))
	}
	return wrap(op, C.slice_update(h.ctx[0], h.ctx[1], &w.start[0], &w.stop[0], &w.strides[0], w.n), a, update)
}

// window is a choice of elements in the form that C takes.
type window struct {
	start, stop, strides []C.int
	n                    C.size_t
}

func newWindow(a *Array, start, stop, strides []int) (window, error) {
	if strides == nil {
		strides = slices.Repeat([]int{1}, len(start))
	}
	if n := a.NDim(); len(start) != n || len(stop) != n || len(strides) != n {
		return window{}, fmt.Errorf("start, stop and strides have %d, %d and %d entries, want %d",
			len(start), len(stop), len(strides), n)
	}
	if slices.Contains(strides, 0) {
		return window{}, errors.New("a stride is 0")
	}
	s, err1 := cInts(start)
	e, err2 := cInts(stop)
	t, err3 := cInts(strides)
	return window{s, e, t, C.size_t(len(start))}, errors.Join(err1, err2, err3)
}

// Take returns the slices of a at the positions ids of the axis. The result has ids'
// axes in the place of that axis: a of shape (V,D) and ids of shape (B,L) give
// (B,L,D) along axis 0. ids are integers, negative ones count from the end. MLX does
// not check them: one beyond the axis reads memory that is not the array's.
func (a *Array) Take(ids *Array, axis int) *Array {
	return alongAxis("take", axis, func(h handles, axis C.int) C.mlxg_result {
		return C.take(h.ptr(), axis)
	}, a, ids)
}

// TakeAlongAxis returns, for every position of ids, the element of a whose position
// along the axis is what ids holds there, and whose other positions are the same. ids
// has as many axes as a; all but the given one are broadcast to each other. ids are
// integers, and not checked, as those of Take.
func (a *Array) TakeAlongAxis(ids *Array, axis int) *Array {
	const op = "take_along_axis"
	// MLX looks at neither before it computes.
	if err := checkIDs(ids); err != nil {
		return invalid(opError(op, err, a, ids))
	}
	if _, err := a.axis(axis); err == nil && a.Dim(axis) == 0 && ids.Size() > 0 {
		return invalid(opError(op, errors.New("there is nothing to take from along an axis of size 0"), a, ids))
	}
	return alongAxis(op, axis, func(h handles, axis C.int) C.mlxg_result {
		return C.take_along_axis(h.ptr(), axis)
	}, a, ids)
}

// ScatterAdd returns a copy of a to which updates is added at the slices that
// a.Take(ids, axis) takes, and once for every time that a slice is taken. updates has
// the shape of that result and is converted to a's dtype. It is the gradient of Take;
// an id beyond the axis writes to memory that is not the array's.
func (a *Array) ScatterAdd(ids, updates *Array, axis int) *Array {
	const op = "scatter_add"
	operands := []*Array{a, ids, updates}
	held, err := acquireAll(op, operands)
	if err != nil {
		return invalid(err)
	}
	defer held.release()
	shape, idAxes := a.Shape(), ids.Shape()
	axis, err = a.axis(axis)
	if err != nil {
		return invalid(opError(op, err, operands...))
	}
	taken := slices.Concat(shape[:axis], idAxes, shape[axis+1:])
	if !slices.Equal(updates.Shape(), taken) {
		return invalid(opError(op, fmt.Errorf("the updates must have the shape of what Take gives along axis %d, %s",
			axis, shapeText(taken)), operands...))
	}
	// MLX wants ids' axes in front of all of a's, the one of the ids with size 1.
	var order []int
	for i := range idAxes {
		order = append(order, axis+i)
	}
	for i := range taken {
		if i < axis || i >= axis+len(idAxes) {
			order = append(order, i)
		}
	}
	moved := updates.Transpose(order...)
	defer moved.Free()
	placed := moved.ExpandDims(len(idAxes) + axis)
	defer placed.Free()
	return alongAxis(op, axis, func(h handles, axis C.int) C.mlxg_result {
		return C.scatter_add(h.ptr(), axis)
	}, a, ids, placed).orNothing()
}

// ScatterAddAlongAxis returns a copy of a to which updates is added at the elements
// that a.TakeAlongAxis(ids, axis) takes, and once for every time that an element is
// taken. updates is broadcast to ids' shape and converted to a's dtype. It is the
// gradient of TakeAlongAxis; an id beyond the axis writes to memory that is not the
// array's.
func (a *Array) ScatterAddAlongAxis(ids, updates *Array, axis int) *Array {
	const op = "scatter_add_axis"
	if err := checkIDs(ids); err != nil { // MLX looks when it computes
		return invalid(opError(op, err, a, ids, updates))
	}
	return alongAxis(op, axis, func(h handles, axis C.int) C.mlxg_result {
		return C.scatter_add_axis(h.ptr(), axis)
	}, a, ids, updates).orNothing()
}

// checkIDs says so if ids are valid but no integers.
func checkIDs(ids *Array) error {
	if d := ids.DType(); d != Invalid && !d.IsInteger() {
		return fmt.Errorf("the ids are %v: they must be integers", d)
	}
	return nil
}

// Sort returns the elements in ascending order along the axis, NaN last.
func (a *Array) Sort(axis int) *Array {
	return a.withInts("sort", []int{axis}, func(ctx unsafe.Pointer, axis *C.int, _ C.size_t) C.mlxg_result {
		return C.sort_axis(ctx, *axis)
	}).orNothing()
}

// ArgSort returns the positions, as uint32, that bring the elements into ascending
// order along the axis: a.TakeAlongAxis(a.ArgSort(i), i) is a.Sort(i).
func (a *Array) ArgSort(axis int) *Array {
	return a.withInts("argsort", []int{axis}, func(ctx unsafe.Pointer, axis *C.int, _ C.size_t) C.mlxg_result {
		return C.argsort_axis(ctx, *axis)
	}).orNothing()
}

// Tril keeps, in the last two axes, the elements on diagonal k and below it; the
// others become 0. Diagonal 0 is the main one, those above it have k > 0.
func (a *Array) Tril(k int) *Array {
	return a.triangle("tril", k, func(ctx unsafe.Pointer, k C.int) C.mlxg_result { return C.tril(ctx, k) })
}

// Triu keeps, in the last two axes, the elements on diagonal k and above it; the
// others become 0.
func (a *Array) Triu(k int) *Array {
	return a.triangle("triu", k, func(ctx unsafe.Pointer, k C.int) C.mlxg_result { return C.triu(ctx, k) })
}

func (a *Array) triangle(op string, k int, f func(ctx unsafe.Pointer, k C.int) C.mlxg_result) *Array {
	// Beyond the corners all diagonals are alike; MLX's integers would overflow.
	k = min(max(k, -a.Dim(-2)), a.Dim(-1))
	return a.withInts(op, []int{k}, func(ctx unsafe.Pointer, k *C.int, _ C.size_t) C.mlxg_result { return f(ctx, *k) })
}
