package mlxc

import (
	"errors"
	"fmt"
	"slices"
)

// Slice takes the elements start, start+stride, … below stop of every axis,
// without a copy. All three lists have one entry for every axis; a nil strides
// stands for ones. Negative positions count from the end, as in MLX.
func (a *Array) Slice(start, stop, strides []int) *Array {
	const op = "slice"
	strides, err := a.window(start, stop, strides)
	if err != nil {
		return invalid(opError(op, err, a))
	}
	return mlxSlice(a, start, stop, strides)
}

// SliceUpdate returns a copy of a in which update stands at the elements that Slice
// takes. update is broadcast to their shape and converted to a's dtype.
func (a *Array) SliceUpdate(update *Array, start, stop, strides []int) *Array {
	const op = "slice_update"
	strides, err := a.window(start, stop, strides)
	if err != nil {
		return invalid(opError(op, err, a, update))
	}
	return mlxSliceUpdate(a, update, start, stop, strides)
}

// window checks a choice of elements of a valid array and gives its strides.
func (a *Array) window(start, stop, strides []int) ([]int, error) {
	if a.Err() != nil {
		return strides, nil // the operation passes that error on
	}
	if strides == nil {
		strides = slices.Repeat([]int{1}, len(start))
	}
	if n := a.NDim(); len(start) != n || len(stop) != n || len(strides) != n {
		return nil, fmt.Errorf("start, stop and strides have %d, %d and %d entries, want %d",
			len(start), len(stop), len(strides), n)
	}
	if slices.Contains(strides, 0) {
		return nil, errors.New("a stride is 0")
	}
	return strides, nil
}

// Take returns the slices of a at the positions ids of the axis. The result has ids'
// axes in the place of that axis: a of shape (V,D) and ids of shape (B,L) give
// (B,L,D) along axis 0. ids are integers, negative ones count from the end. MLX does
// not check them: one beyond the axis reads memory that is not the array's.
func (a *Array) Take(ids *Array, axis int) *Array {
	return mlxTakeAxis(a, ids, axis)
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
	return mlxTakeAlongAxis(a, ids, axis)
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
	return mlxScatterAddSingle(a, ids, placed, axis).orNothing()
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
	return mlxScatterAddAxis(a, ids, updates, axis).orNothing()
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
	return mlxSortAxis(a, axis).orNothing()
}

// ArgSort returns the positions, as uint32, that bring the elements into ascending
// order along the axis: a.TakeAlongAxis(a.ArgSort(i), i) is a.Sort(i).
func (a *Array) ArgSort(axis int) *Array {
	return mlxArgsortAxis(a, axis).orNothing()
}

// Tril keeps, in the last two axes, the elements on diagonal k and below it; the
// others become 0. Diagonal 0 is the main one, those above it have k > 0.
func (a *Array) Tril(k int) *Array {
	return mlxTril(a, a.diagonal(k))
}

// Triu keeps, in the last two axes, the elements on diagonal k and above it; the
// others become 0.
func (a *Array) Triu(k int) *Array {
	return mlxTriu(a, a.diagonal(k))
}

// diagonal limits k to what the last two axes have: beyond the corners all diagonals are
// alike, and MLX's integers would overflow.
func (a *Array) diagonal(k int) int { return min(max(k, -a.Dim(-2)), a.Dim(-1)) }
