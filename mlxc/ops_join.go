package mlxc

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Joining and splitting arrays.

// Concatenate joins arrays along an axis. The sizes of the other axes must be equal; dtypes are promoted.
func Concatenate(axis int, arrays ...*Array) *Array {
	const op = "concatenate"
	n := 0 // must fit MLX's 32 bits
	for _, a := range arrays {
		if n += a.Dim(axis); n > math.MaxInt32 {
			return invalid(opError(op, errors.New("the result's axis is longer than 2³¹−1"), arrays...))
		}
	}
	return mlxConcatenateAxis(arrays, axis)
}

// Stack joins arrays of the same shape along a new axis at position axis of the result; dtypes are promoted.
func Stack(axis int, arrays ...*Array) *Array {
	return mlxStackAxis(arrays, axis)
}

// Split splits the axis into n equal parts, without a copy. n is at least 1, and at most 1024 if the axis has size 0.
// On an error it returns min(n, 1024) arrays, but at least one, that carry it.
func (a *Array) Split(n, axis int) []*Array {
	const op = "split"
	if n < 1 {
		return invalidArrays(1, opError(op, fmt.Errorf("%d parts: there must be at least 1", n), a))
	}
	if _, err := a.axis(axis); err == nil && n > maxInvalid && a.Dim(axis) == 0 { // size 0 is divisible by any n
		return invalidArrays(maxInvalid, opError(op,
			fmt.Errorf("%d parts of an axis of size 0: there may be at most %d", n, maxInvalid), a))
	}
	return orInvalid(min(n, maxInvalid))(mlxSplit(a, n, axis))
}

// Unstack returns the slices of a along the axis, without that axis and without a copy. On an error it returns one
// array that carries it.
func (a *Array) Unstack(axis int) []*Array {
	return orInvalid(1)(mlxUnstackAxis(a, axis))
}

// SplitAt splits the axis before each of the ascending positions, without a copy. It returns one part more than there
// are positions. On an error, the parts carry it.
func (a *Array) SplitAt(axis int, positions ...int) []*Array {
	const op = "split"
	n := len(positions)
	if a.Err() == nil {
		size := a.Dim(axis)
		_, err := a.axis(axis)
		if err == nil && !slices.IsSorted(slices.Concat([]int{0}, positions, []int{size})) {
			err = fmt.Errorf("the positions %v do not ascend between 0 and %d, the size of axis %d", positions, size,
				axis)
		}
		if err != nil {
			return invalidArrays(n+1, opError(op, err, a))
		}
	}
	return orInvalid(n + 1)(mlxSplitSections(a, positions, axis))
}
