package mlxc

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Reshape returns the elements, in row-major order, with another shape of the same size. One axis may be −1; its size
// is computed.
func (a *Array) Reshape(shape ...int) *Array {
	const op = "reshape"
	if err := checkUnknown(shape); err != nil {
		return invalid(opError(op, err, a))
	}
	return mlxReshape(a, shape)
}

// BroadcastTo repeats axes of size 1 and adds leading axes, without a copy.
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

// Flatten merges the axes first to last, both included, into one.
func (a *Array) Flatten(first, last int) *Array {
	return mlxFlatten(a, first, last)
}

// ExpandDims inserts axes of size 1 at the given positions of the result.
func (a *Array) ExpandDims(axes ...int) *Array {
	return mlxExpandDimsAxes(a, axes)
}

// Squeeze removes the given axes, which must have size 1, or all axes of size 1 if none are given.
func (a *Array) Squeeze(axes ...int) *Array {
	return mlxSqueezeAxes(a, axes)
}

// Tile repeats the whole array reps times along every axis. The last entry of reps is for the last axis. Missing
// entries and missing axes count as 1.
func (a *Array) Tile(reps ...int) *Array {
	const op = "tile"
	if a.Err() == nil {
		shape := a.Shape()
		for len(shape) < len(reps) {
			shape = slices.Insert(shape, 0, 1)
		}
		for i, n := range reps {
			if err := multiplyAxis(shape, len(shape)-len(reps)+i, n, a.DType()); err != nil {
				return invalid(opError(op, err, a))
			}
		}
	}
	return mlxTile(a, reps)
}

// Repeat repeats every element n times along the axis.
func (a *Array) Repeat(n, axis int) *Array {
	const op = "repeat"
	if a.Err() == nil {
		i, err := a.axis(axis)
		if err == nil {
			err = multiplyAxis(a.Shape(), i, n, a.DType())
		}
		if err != nil {
			return invalid(opError(op, err, a))
		}
	}
	return mlxRepeatAxis(a, n, axis)
}

// multiplyAxis multiplies the size of the axis in shape by n, and checks the new shape.
func multiplyAxis(shape []int, axis, n int, d DType) error {
	if n < 0 {
		return fmt.Errorf("%d repetitions: there must be at least 0", n)
	}
	if n > math.MaxInt32 {
		return fmt.Errorf("%d repetitions do not fit MLX's 32 bits", n)
	}
	shape[axis] *= n // both factors have 32 bits: no overflow
	return checkNew(d, shape)
}

// Contiguous returns the array in row-major order, copied only if needed.
func (a *Array) Contiguous() *Array {
	if a.Err() == nil && a.NDim() == 0 {
		return a.Reshape() // on CUDA, MLX 0.32.2 does not write the copy of a scalar view of a large array
	}
	const columnMajorToo = false
	return mlxContiguous(a, columnMajorToo)
}

// MoveAxis moves an axis to another position, without a copy; the others keep their order.
func (a *Array) MoveAxis(from, to int) *Array {
	return mlxMoveaxis(a, from, to)
}

// Unflatten splits the axis into several, without a copy if possible. One of them may be −1; its size is computed. It
// is the inverse of Flatten.
func (a *Array) Unflatten(axis int, shape ...int) *Array {
	const op = "unflatten"
	if err := checkUnknown(shape); err != nil {
		return invalid(opError(op, err, a))
	}
	return mlxUnflatten(a, axis, shape)
}

// checkUnknown checks a shape in which one axis may be −1. MLX accepts any other negative size, lets the product
// overflow, and divides by it (faults reshape-negative-sizes and unflatten-empty).
func checkUnknown(shape []int) error {
	known := shape
	if i := slices.Index(shape, -1); i >= 0 {
		known = slices.Delete(slices.Clone(shape), i, i+1)
		if slices.Contains(known, -1) {
			return fmt.Errorf("the shape %s has several −1: only one axis may be −1", shapeText(shape))
		}
		if slices.Contains(known, 0) {
			return fmt.Errorf("the −1 in %s is ambiguous, because another axis is 0: give its size", shapeText(shape))
		}
	}
	_, err := checkShape(Bool, known)
	return err
}

// AtLeast1D returns a with at least one axis.
func (a *Array) AtLeast1D() *Array { return mlxAtleast1d(a) }

// AtLeast2D returns a with at least two axes: a vector of size n becomes (1,n).
func (a *Array) AtLeast2D() *Array { return mlxAtleast2d(a) }

// AtLeast3D returns a with at least three axes: a vector of size n becomes (1,n,1), a matrix of shape (m,n) becomes
// (m,n,1).
func (a *Array) AtLeast3D() *Array { return mlxAtleast3d(a) }

// Flip reverses the order of elements along the axes, or along all axes if none are given.
func (a *Array) Flip(axes ...int) *Array {
	return mlxFlipAxes(a, axes)
}

// Roll shifts elements by n positions along the axes, cyclically; a negative n shifts backward. Without axes it shifts
// the elements in row-major order and keeps the shape.
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

// BroadcastArrays broadcasts the arrays to their common shape, without a copy. On an error, all results carry it.
func BroadcastArrays(arrays ...*Array) []*Array {
	return orInvalid(len(arrays))(mlxBroadcastArrays(arrays))
}

// MeshgridConfig holds the options of Meshgrid. The zero value is Cartesian indexing, as for plots: the first array
// runs along the columns.
type MeshgridConfig struct {
	MatrixIndexing bool // the first array runs along axis 0, the second along axis 1
	Sparse         bool // keeps the other axes at size 1, for broadcasting
}

// Meshgrid returns coordinate arrays of a grid: n arrays of n axes for n one-dimensional arrays. On an error, all
// results carry it.
func Meshgrid(c MeshgridConfig, arrays ...*Array) []*Array {
	const op = "meshgrid"
	for _, a := range arrays {
		if a.Err() == nil && a.NDim() > 1 {
			return invalidArrays(len(arrays), opError(op, errors.New("the arrays must have at most one axis"),
				arrays...))
		}
	}
	indexing := "xy"
	if c.MatrixIndexing {
		indexing = "ij"
	}
	return orInvalid(len(arrays))(mlxMeshgrid(arrays, c.Sparse, indexing))
}

// AsStrided returns a view of a's elements in row-major order with the given strides: element (i,j,…) of the result is
// element offset + i·strides[0] + j·strides[1] + … of a. Overlapping windows cost no memory. A view that reaches
// outside a's elements is an error. MLX has no batching rule for it.
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
	// MLX flattens a without a copy if its strides allow that, and then requires row-major order: an evaluated
	// broadcast would fail (fault as-strided-broadcast).
	rows := mlxContiguous(a, false)
	defer rows.Free()
	return mlxAsStrided(rows, shape, strides, offset)
}

// checkStrides returns an error if a strided view reaches outside the n elements.
func checkStrides(shape, strides []int, offset, n int) error {
	if len(shape) != len(strides) {
		return fmt.Errorf("the shape %s has %d axes, but there are %d strides", shapeText(shape), len(shape),
			len(strides))
	}
	if offset < 0 || offset > n {
		return fmt.Errorf("the offset is %d: it must be 0 to %d", offset, n)
	}
	if slices.Contains(shape, 0) {
		return nil
	}
	first, last := offset, offset
	for i, size := range shape {
		if size > 1 && (strides[i] > maxBytes/size || strides[i] < -maxBytes/size) || last > maxBytes ||
			first < -maxBytes {
			return fmt.Errorf("the stride %d of axis %d reaches outside the %d elements", strides[i], i, n)
		}
		first += min(0, (size-1)*strides[i])
		last += max(0, (size-1)*strides[i])
	}
	if first < 0 || last >= n {
		return fmt.Errorf("the view reaches from element %d to %d, but there are %d elements", first, last, n)
	}
	return nil
}
