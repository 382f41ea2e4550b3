package mlxc

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Joining arrays, and taking them apart.

// Concatenate joins arrays along an axis. Their other axes are equal; dtypes are promoted.
func Concatenate(axis int, arrays ...*Array) *Array {
	const op = "concatenate"
	n := 0 // which MLX's 32 bits have to hold
	for _, a := range arrays {
		if n += a.Dim(axis); n > math.MaxInt32 {
			return invalid(opError(op, errors.New("together they are longer than 2³¹−1"), arrays...))
		}
	}
	return mlxConcatenateAxis(arrays, axis)
}

// Stack joins arrays of one shape along a new axis, at the given place of the result;
// dtypes are promoted.
func Stack(axis int, arrays ...*Array) *Array {
	return mlxStackAxis(arrays, axis)
}

// Split cuts the axis into n equal parts, without a copy. If it fails, the parts
// carry the error; there are as many as were asked for, but at most 1024.
func (a *Array) Split(n, axis int) []*Array {
	const op = "split"
	if n < 1 {
		return invalidArrays(1, opError(op, fmt.Errorf("%d parts: there must be 1 or more", n), a))
	}
	if _, err := a.axis(axis); err == nil && n > maxInvalid && a.Dim(axis) == 0 { // which any number divides
		return invalidArrays(maxInvalid, opError(op, fmt.Errorf("%d parts of nothing: there may be %d at most", n, maxInvalid), a))
	}
	return orInvalid(min(n, maxInvalid))(mlxSplit(a, n, axis))
}

// Unstack gives the slices of a along the axis, which they lack, without a copy. If it
// fails, there is one that carries the error.
func (a *Array) Unstack(axis int) []*Array {
	return orInvalid(1)(mlxUnstackAxis(a, axis))
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
			return invalidArrays(n+1, opError(op, err, a))
		}
	}
	return orInvalid(n + 1)(mlxSplitSections(a, positions, axis))
}
