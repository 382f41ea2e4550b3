package mlxc

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Reshape gives the elements, in row-major order, another shape of the same size.
// One axis may be −1: it is computed.
func (a *Array) Reshape(shape ...int) *Array {
	const op = "reshape"
	if err := checkUnknown(shape); err != nil {
		return invalid(opError(op, err, a))
	}
	return mlxReshape(a, shape)
}

// BroadcastTo repeats axes of size 1, and adds axes in front, without a copy.
func (a *Array) BroadcastTo(shape ...int) *Array {
	if a.Err() == nil {
		if err := checkNew(a.DType(), shape); err != nil {
			return invalid(opError("broadcast_to", err, a))
		}
	}
	return mlxBroadcastTo(a, shape)
}

// Transpose permutes the axes without a copy; without arguments it reverses them.
func (a *Array) Transpose(axes ...int) *Array {
	return mlxTransposeAxes(a, axes)
}

// SwapAxes exchanges two axes without a copy.
func (a *Array) SwapAxes(i, j int) *Array {
	return mlxSwapaxes(a, i, j)
}

// Flatten makes one axis of the axes first to last, both included.
func (a *Array) Flatten(first, last int) *Array {
	return mlxFlatten(a, first, last)
}

// ExpandDims adds axes of size 1 at the given places of the result.
func (a *Array) ExpandDims(axes ...int) *Array {
	return mlxExpandDimsAxes(a, axes)
}

// Squeeze removes the given axes, which must have size 1; all of size 1 if none
// are given.
func (a *Array) Squeeze(axes ...int) *Array {
	return mlxSqueezeAxes(a, axes)
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
	return mlxTile(a, reps)
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
	return mlxRepeatAxis(a, n, axis)
}

// repeated makes the axis of the shape n times as long, if memory can hold that.
func repeated(shape []int, axis, n int, d DType) error {
	if n < 0 {
		return fmt.Errorf("%d repetitions: there must be 0 or more", n)
	}
	if n > math.MaxInt32 {
		return fmt.Errorf("%d repetitions do not fit MLX's 32 bits", n)
	}
	shape[axis] *= n // of two 32-bit numbers: no overflow
	return checkNew(d, shape)
}

// Contiguous returns the array in row-major order, copied only if it is not.
func (a *Array) Contiguous() *Array {
	if a.Err() == nil && a.NDim() == 0 {
		return a.Reshape() // MLX 0.32.2 on CUDA leaves the copy of one element of a large array unwritten
	}
	const columnMajorToo = false
	return mlxContiguous(a, columnMajorToo)
}

// MoveAxis puts the axis at another place, without a copy; the others keep their order.
func (a *Array) MoveAxis(from, to int) *Array {
	return mlxMoveaxis(a, from, to)
}

// Unflatten gives the axis the shape of several ones, without a copy where it can. One of
// them may be −1: it is computed. It undoes Flatten.
func (a *Array) Unflatten(axis int, shape ...int) *Array {
	const op = "unflatten"
	if err := checkUnknown(shape); err != nil {
		return invalid(opError(op, err, a))
	}
	return mlxUnflatten(a, axis, shape)
}

// checkUnknown checks a shape with at most one axis that is −1. MLX takes any other number
// for a size, negative ones too, lets their product overflow, and divides by it.
func checkUnknown(shape []int) error {
	known := shape
	if i := slices.Index(shape, -1); i >= 0 {
		known = slices.Delete(slices.Clone(shape), i, i+1)
		if slices.Contains(known, -1) {
			return fmt.Errorf("the shape %s leaves several axes open: one may be −1", shapeText(shape))
		}
		if slices.Contains(known, 0) {
			return fmt.Errorf("the −1 in %s could be anything: say what it is", shapeText(shape))
		}
	}
	_, err := checkShape(Bool, known)
	return err
}

// AtLeast1D returns a with at least one axis.
func (a *Array) AtLeast1D() *Array { return mlxAtleast1d(a) }

// AtLeast2D returns a with at least two axes: a vector of n becomes (1,n).
func (a *Array) AtLeast2D() *Array { return mlxAtleast2d(a) }

// AtLeast3D returns a with at least three axes: a vector of n becomes (1,n,1), a matrix of
// (m,n) becomes (m,n,1).
func (a *Array) AtLeast3D() *Array { return mlxAtleast3d(a) }

// Flip reverses the order along the axes, or along all if none are given.
func (a *Array) Flip(axes ...int) *Array {
	return mlxFlipAxes(a, axes)
}

// Roll moves the elements n places on along the axes, those at the end to the front; back
// where n is negative. Without axes it rolls the elements in row-major order and keeps the
// shape.
func (a *Array) Roll(n int, axes ...int) *Array {
	if len(axes) > 0 {
		return mlxRollAxes(a, slices.Repeat([]int{n}, len(axes)), axes)
	}
	flat := a.Reshape(-1)
	defer flat.Free()
	rolled := flat.Roll(n, 0)
	defer rolled.Free()
	return rolled.Reshape(a.Shape()...)
}

// BroadcastArrays broadcasts the arrays to their common shape, without a copy. If it
// fails, the results carry the error; there is always one for each.
func BroadcastArrays(arrays ...*Array) []*Array {
	return orInvalid(len(arrays))(mlxBroadcastArrays(arrays))
}

// MeshgridConfig says how Meshgrid spans its grid. The zero value is that of plots: the
// first array runs along the columns.
type MeshgridConfig struct {
	MatrixIndexing bool // the first array runs along axis 0, the second along axis 1
	Sparse         bool // leave the other axes at size 1, for broadcasting
}

// Meshgrid makes a grid of coordinates from the coordinates along its axes: of n arrays of
// one axis, n arrays of n axes. If it fails, the results carry the error; there is always
// one for each.
func Meshgrid(c MeshgridConfig, arrays ...*Array) []*Array {
	const op = "meshgrid"
	for _, a := range arrays {
		if a.Err() == nil && a.NDim() > 1 {
			return invalidArrays(len(arrays), opError(op, errors.New("the coordinates along an axis must have one axis"), arrays...))
		}
	}
	indexing := "xy"
	if c.MatrixIndexing {
		indexing = "ij"
	}
	return orInvalid(len(arrays))(mlxMeshgrid(arrays, c.Sparse, indexing))
}

// AsStrided looks at a's elements in row-major order, through strides of its own choice:
// the element at (i,j,…) of the result is the one at offset + i·strides[0] + j·strides[1]
// + …. Windows that overlap cost no memory so. Everything must lie within the elements.
// MLX has no rule for it under Vmap.
func (a *Array) AsStrided(shape, strides []int, offset int) *Array {
	const op = "as_strided"
	if a.Err() == nil {
		err := checkNew(a.DType(), shape)
		if err == nil {
			err = checkStrides(shape, strides, offset, a.Size())
		}
		if err != nil {
			return invalid(opError(op, err, a))
		}
	}
	// MLX flattens a without a copy if its strides allow that, then requires row-major order:
	// an evaluated broadcast would fail.
	rows := mlxContiguous(a, false)
	defer rows.Free()
	return mlxAsStrided(rows, shape, strides, offset)
}

// checkStrides says if a view with the strides would leave the n elements.
func checkStrides(shape, strides []int, offset, n int) error {
	if len(shape) != len(strides) {
		return fmt.Errorf("the shape %s has %d axes, but there are %d strides", shapeText(shape), len(shape), len(strides))
	}
	if offset < 0 || offset > n {
		return fmt.Errorf("the offset %d is not among the %d elements", offset, n)
	}
	if slices.Contains(shape, 0) {
		return nil
	}
	first, last := offset, offset
	for i, size := range shape {
		if size > 1 && (strides[i] > maxBytes/size || strides[i] < -maxBytes/size) || last > maxBytes || first < -maxBytes {
			return fmt.Errorf("the stride %d of axis %d leaves the %d elements", strides[i], i, n)
		}
		first += min(0, (size-1)*strides[i])
		last += max(0, (size-1)*strides[i])
	}
	if first < 0 || last >= n {
		return fmt.Errorf("it reaches from element %d to %d, but there are %d", first, last, n)
	}
	return nil
}
