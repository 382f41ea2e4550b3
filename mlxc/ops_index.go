package mlxc

import (
	"errors"
	"fmt"
	"slices"
)

// Slice returns the elements start, start+stride, … before stop of every axis, without a copy. The lists have one entry
// per axis; nil strides stand for ones. Negative positions count from the end, as in MLX.
func (a *Array) Slice(start, stop, strides []int) *Array {
	const op = "slice"
	start, stop, strides, err := a.window(start, stop, strides)
	if err != nil {
		return invalid(opError(op, err, a))
	}
	return mlxSlice(a, start, stop, strides)
}

// SliceUpdate returns a copy of a with update at the elements that Slice selects. update is broadcast to their shape
// and converted to a's dtype.
func (a *Array) SliceUpdate(update *Array, start, stop, strides []int) *Array {
	const op = "slice_update"
	start, stop, strides, err := a.window(start, stop, strides)
	if err != nil {
		return invalid(opError(op, err, a, update))
	}
	return mlxSliceUpdate(a, update, start, stop, strides)
}

// window checks the slice of a valid array and returns the equivalent slice for MLX.
func (a *Array) window(start, stop, strides []int) (from, to, by []int, err error) {
	if a.Err() != nil {
		return start, stop, strides, nil // the operation passes that error on
	}
	if strides == nil {
		strides = slices.Repeat([]int{1}, len(start))
	}
	if n := a.NDim(); len(start) != n || len(stop) != n || len(strides) != n {
		return nil, nil, nil, fmt.Errorf("start, stop and strides have %d, %d and %d entries: they must have %d",
			len(start), len(stop), len(strides), n)
	}
	if slices.Contains(strides, 0) {
		return nil, nil, nil, errors.New("a stride is 0")
	}
	if err := check32(slices.Concat(start, stop)...); err != nil {
		return nil, nil, nil, err
	}
	from, to, by = slices.Clone(start), slices.Clone(stop), slices.Clone(strides)
	for i, n := range a.Shape() {
		by[i] = clampStride(strides[i], n)
		// MLX's gradient of a strided slice of at most one element is wrong: it flows to other elements, or has another
		// shape (fault slice-gradient-single-element). Such a slice is taken with stride 1.
		if at, size := firstElement(start[i], stop[i], by[i], n); size < 2 {
			from[i], to[i], by[i] = at, at+size, 1
		}
	}
	return from, to, by, nil
}

// firstElement returns the first of the positions start, start+stride, … before stop on an axis of size n, by MLX's
// rules. size is their number, or 2 if there are more.
func firstElement(start, stop, stride, n int) (at, size int) {
	if start < 0 {
		start += n
	}
	if stop < 0 {
		stop += n
	}
	length := 0
	if stride > 0 {
		start, stop = min(max(start, 0), n), min(max(stop, 0), n)
		length = stop - start
	} else {
		start, stop = min(start, n-1), max(stop, -1)
		length = start - stop
	}
	switch {
	case length <= 0:
		return 0, 0
	case length <= max(stride, -stride):
		return start, 1
	}
	return start, 2
}

// clampStride limits a stride to the size of its axis. A longer stride selects the same elements but would overflow
// MLX's 32 bits (fault slice-stride-overflow).
func clampStride(stride, n int) int {
	n = max(n, 1)
	return min(max(stride, -n), n)
}

// Take returns the slices of a at positions ids of the axis. The axes of ids replace that axis in the result: a of
// shape (V,D) and ids of shape (B,L) give (B,L,D) along axis 0. ids are integers in -n … n-1 for an axis of size n;
// negative ids count from the end.
//
// An id out of range is an error if the ids are already computed; on CUDA, only if they come from FromSlice or Scalar.
// Otherwise the nearest id in range replaces it. This holds for all operations with ids.
func (a *Array) Take(ids *Array, axis int) *Array {
	limited, free, err := a.limitIDs(ids, axis)
	if err != nil {
		return invalid(opError("take", err, a, ids))
	}
	defer free()
	return mlxTakeAxis(a, limited, axis)
}

// limitIDs calls the function limitIDs for positions along an axis of a.
func (a *Array) limitIDs(ids *Array, axis int) (limited *Array, free func(), err error) {
	n := 0
	if i, err := a.axis(axis); err == nil { // else MLX returns the error
		n = a.Dim(i)
	}
	return limitIDs(ids, n, n-1)
}

// TakeAlongAxis selects elements along the axis, with an id for each element of the result: for a matrix and axis 1,
// result[i,j] = a[i, ids[i,j]]. ids has as many axes as a; all axes but the given one are broadcast. Ids out of range
// are handled as in Take.
func (a *Array) TakeAlongAxis(ids *Array, axis int) *Array {
	const op = "take_along_axis"
	limited, free, err := a.limitIDs(ids, axis)
	if err != nil {
		return invalid(opError(op, err, a, ids))
	}
	defer free()
	// MLX does not check this before it computes.
	if _, err := a.axis(axis); err == nil && a.Dim(axis) == 0 && ids.Size() > 0 {
		return invalid(opError(op, errors.New("the axis has size 0, so no id is in range"), a, ids))
	}
	return mlxTakeAlongAxis(a, limited, axis)
}

// Gather returns windows of a. For each of the axes, ids holds the start positions of the windows; ids are broadcast to
// each other, and windows start at 0 along the other axes. sizes holds the window's size along every axis of a. The
// result has the axes of the ids, followed by the axes of a window.
//
// A window of size s along an axis of size n starts at one of 0 … n-s, or -n … -s counted from the end. Ids out of
// range are handled as in Take. To select elements, Index with IDs is simpler.
func (a *Array) Gather(ids []*Array, axes, sizes []int) *Array {
	const op = "gather"
	operands := append([]*Array{a}, ids...)
	held, err := acquireAll(op, operands)
	if err != nil {
		return invalid(err)
	}
	defer held.release()
	fail := func(err error) *Array { return invalid(opError(op, err, operands...)) }
	shape := a.Shape()
	if len(ids) != len(axes) || len(sizes) != len(shape) {
		return fail(fmt.Errorf("there are %d ids, %d axes and %d sizes: there must be ids for every entry of axes, "+
			"and a size for each of the array's %d axes",
			len(ids), len(axes), len(sizes), len(shape)))
	}
	for i, n := range sizes {
		if n < 0 || n > shape[i] {
			return fail(fmt.Errorf("a window of %d does not fit into axis %d", n, i))
		}
	}
	counted := make([]int, len(axes)) // non-negative, as MLX requires
	var idShape []int
	for i, axis := range axes {
		if counted[i], err = a.axis(axis); err != nil {
			return fail(err)
		}
		if idShape, err = broadcastShapes(idShape, ids[i].Shape()); err != nil {
			return fail(err)
		}
	}
	result := slices.Concat(idShape, sizes)
	if err := checkNew(a.DType(), result); err != nil {
		return fail(err)
	}
	limited, free, err := limitAll(ids,
		func(i int) int { return shape[counted[i]] },
		func(i int) int { return shape[counted[i]] - max(sizes[counted[i]], 1) })
	if err != nil {
		return fail(err)
	}
	defer free()
	if slices.Contains(result, 0) {
		return Zeros(a.DType(), result...)
	}
	return mlxGather(a, limited, counted, sizes)
}

// ScatterAdd returns a copy of a with updates added to the slices that a.Take(ids, axis) selects, once for every time
// that a slice is selected. updates has the shape of that result and is converted to a's dtype. ScatterAdd is the
// gradient of Take, and handles ids out of range in the same way.
func (a *Array) ScatterAdd(ids, updates *Array, axis int) *Array {
	const op = "scatter_add"
	operands := []*Array{a, ids, updates}
	held, err := acquireAll(op, operands)
	if err != nil {
		return invalid(err)
	}
	defer held.release()
	shape := a.Shape()
	axis, err = a.axis(axis)
	if err != nil {
		return invalid(opError(op, err, operands...))
	}
	taken := slices.Concat(shape[:axis], ids.Shape(), shape[axis+1:])
	if !slices.Equal(updates.Shape(), taken) {
		return invalid(opError(op, fmt.Errorf("updates must have the shape of Take's result along axis %d, %s",
			axis, shapeText(taken)), operands...))
	}
	at := append(slices.Repeat([]Index{All}, axis), IDs(ids))
	return a.updateAt(op, updates, at, mlxSliceUpdateAdd, mlxScatterAdd)
}

// ScatterAddAlongAxis returns a copy of a with updates added to the elements that a.TakeAlongAxis(ids, axis) selects,
// once for every time that an element is selected. updates is broadcast to the shape of ids and converted to a's dtype.
// It is the gradient of TakeAlongAxis, and handles ids out of range in the same way.
func (a *Array) ScatterAddAlongAxis(ids, updates *Array, axis int) *Array {
	const op = "scatter_add_axis"
	limited, free, err := a.limitIDs(ids, axis)
	if err != nil {
		return invalid(opError(op, err, a, ids, updates))
	}
	defer free()
	return mlxScatterAddAxis(a, limited, updates, axis).zerosIfEmpty()
}

// PutAlongAxis returns a copy of a with values at the elements that a.TakeAlongAxis(ids, axis) selects. values is
// broadcast to the shape of ids and converted to a's dtype. If ids select an element more than once, an unspecified one
// of its values remains. Ids out of range are handled as in Take.
func (a *Array) PutAlongAxis(ids, values *Array, axis int) *Array {
	const op = "put_along_axis"
	limited, free, err := a.limitIDs(ids, axis)
	if err != nil {
		return invalid(opError(op, err, a, ids, values))
	}
	defer free()
	return mlxPutAlongAxis(a, limited, values, axis).zerosIfEmpty()
}

// MaskedScatter returns a copy of a with the elements where mask is true replaced by elements of source. mask is
// boolean and has a's shape or the shape of a's first axes. Each true element of mask selects an element of a, or a
// slice over the remaining axes. source has the shape (n,…) with these axes: its slices replace the selected ones, in
// row-major order. n is at least the number of true elements. If it is less, a CPU returns an error at evaluation;
// other devices only check that source is not empty. A source of fewer axes, such as a scalar, is broadcast to each
// selected slice. source is converted to a's dtype.
func (a *Array) MaskedScatter(mask, source *Array) *Array {
	const op = "masked_scatter"
	if a.Err() == nil && mask.Size() > 0 && source.Err() == nil && source.Size() == 0 {
		// MLX divides by the number of elements (fault masked-scatter-without-source).
		return invalid(opError(op, errors.New("the source has no elements"), a, mask, source))
	}
	if !a.IsTraced() && !source.IsTraced() {
		return mlxMaskedScatter(a, mask, source).zerosIfEmpty()
	}
	var result *Array
	WithScope(func() {
		// The scatter without padding keeps MLX's errors.
		checked := mlxMaskedScatter(a.StopGradient(), mask, source.StopGradient())
		if checked.Err() != nil {
			result = checked.Keep()
			return
		}
		// For each false element of mask after the last true one, MLX's gradient adds 0 to the next element of source.
		// The source is padded so that this element exists.
		shape := a.Shape()
		rest := shape[mask.NDim():]
		if source.NDim() <= len(rest) {
			source = source.BroadcastTo(slices.Concat([]int{mask.Size()}, rest)...)
		}
		source = source.Flatten(0, -1)
		if missing := a.Size() + 1 - source.Size(); missing > 0 {
			source = Concatenate(0, source, Zeros(source.DType(), missing))
		}
		whole := mask.Reshape(slices.Concat(mask.Shape(), slices.Repeat([]int{1}, len(rest)))...).BroadcastTo(shape...)
		result = mlxMaskedScatter(a, whole, source).After(checked).zerosIfEmpty().Keep()
	})
	return result
}

// SliceDynamic returns a window whose position is an array. sizes has the window's size for every axis. The window
// begins at start along the given axes, and at 0 along the others. start is a vector of integers, one per entry of
// axes, and is limited so that the window lies within the array.
func (a *Array) SliceDynamic(start *Array, axes, sizes []int) *Array {
	const op = "slice_dynamic"
	for i, x := range []*Array{a, start} {
		if err := x.Err(); err != nil {
			return invalid(operandError(op, err, i, a, start))
		}
	}
	limited, err := a.limitStart(start, axes, sizes)
	if err != nil {
		return invalid(opError(op, err, a, start))
	}
	defer limited.Free()
	return mlxSliceDynamic(a, limited, axes, sizes)
}

// SliceUpdateDynamic returns a copy of a with update at a window whose position is an array. The window has the shape
// of update and begins at start along the given axes, as in SliceDynamic. update has as many axes as a and is converted
// to a's dtype.
func (a *Array) SliceUpdateDynamic(update, start *Array, axes []int) *Array {
	const op = "slice_update_dynamic"
	operands := []*Array{a, update, start}
	for i, x := range operands {
		if err := x.Err(); err != nil {
			return invalid(operandError(op, err, i, operands...))
		}
	}
	limited, err := a.limitStart(start, axes, update.Shape())
	if err != nil {
		return invalid(opError(op, err, operands...))
	}
	defer limited.Free()
	return mlxSliceUpdateDynamic(a, update, limited, axes).zerosIfEmpty()
}

// limitStart limits the start of a window so that the window lies within a. MLX does not, and would access memory
// outside the array.
func (a *Array) limitStart(start *Array, axes, sizes []int) (*Array, error) {
	shape := a.Shape()
	if len(sizes) != len(shape) {
		return nil, fmt.Errorf("the window has %d axes, but the array has %d", len(sizes), len(shape))
	}
	for i, n := range sizes {
		if n < 0 || n > shape[i] {
			return nil, fmt.Errorf("a window of %d does not fit into axis %d", n, i)
		}
	}
	if err := checkIDs(start); err != nil {
		return nil, err
	}
	if start.NDim() > 1 || start.Size() != len(axes) {
		return nil, fmt.Errorf("start must be a vector of %d integers, one per entry of axes", len(axes))
	}
	last := make([]int64, len(axes))
	for k, axis := range axes {
		i, err := a.axis(axis)
		if err != nil {
			return nil, err
		}
		last[k] = int64(shape[i] - sizes[i])
	}
	var limited *Array
	WithScope(func() {
		limited = start.StopGradient().AsType(Int64).Minimum(FromSlice(last,
			start.Shape()...)).Maximum(Scalar(int64(0))).Keep()
	})
	return limited, nil
}
