package mlxc

import (
	"fmt"
	"math"
	"slices"
)

// AsType converts the elements.
func (a *Array) AsType(d DType) *Array {
	return mlxAstype(a, d)
}

// Reshape gives the elements, in row-major order, another shape of the same size.
// One axis may be −1: it is computed.
func (a *Array) Reshape(shape ...int) *Array {
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
	if len(axes) == 0 {
		axes = nil // not the caller's buffer
		for i := a.NDim() - 1; i >= 0; i-- {
			axes = append(axes, i)
		}
	}
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
	if len(axes) == 0 {
		axes = nil // not the caller's buffer
		for i, n := range a.Shape() {
			if n == 1 {
				axes = append(axes, i)
			}
		}
	}
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
		return fmt.Errorf("%d repetitions are beyond MLX's 32 bits", n)
	}
	shape[axis] *= n // of two 32-bit numbers: no overflow
	return checkNew(d, shape)
}

// Contiguous returns the array in row-major order, copied only if it is not.
func (a *Array) Contiguous() *Array {
	const columnMajorToo = false
	return mlxContiguous(a, columnMajorToo)
}

// Concatenate joins arrays along an axis.
func Concatenate(axis int, arrays ...*Array) *Array {
	return mlxConcatenateAxis(arrays, axis)
}

// Stack joins arrays of one shape along a new axis, at the given place of the result.
func Stack(axis int, arrays ...*Array) *Array {
	return mlxStackAxis(arrays, axis)
}

// Split cuts the axis into n equal parts, without a copy. If it fails, the parts
// carry the error; there are as many as were asked for, but at most 1024.
func (a *Array) Split(n, axis int) []*Array {
	const op = "split"
	if n < 1 {
		return failed(1, opError(op, fmt.Errorf("%d parts: there must be 1 or more", n), a))
	}
	return orFailed(min(n, maxFailed))(mlxSplit(a, n, axis))
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
	return orFailed(n + 1)(mlxSplitSections(a, positions, axis))
}

// Full makes an array with all elements equal to value, a scalar, in dtype d.
func Full(d DType, value *Array, shape ...int) *Array {
	const op = "full"
	if err := checkNew(d, shape); err != nil {
		return invalid(&Error{Op: op, Err: err})
	}
	return mlxFull(shape, value, d)
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
	return mlxArange(start, stop, step, d)
}
