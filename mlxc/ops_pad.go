package mlxc

import (
	"fmt"
	"math"
)

// Padding describes the elements to add around one axis.
type Padding struct {
	Axis          int // a negative axis counts from the end
	Before, After int // numbers of elements, at least 0
}

// Pad adds elements of value, a scalar converted to a's dtype, around the given axes; nil stands for 0. Several entries
// for one axis add up.
func (a *Array) Pad(value *Array, padding ...Padding) *Array {
	const op = "pad"
	if value == nil {
		value = Zeros(Int8)
		defer value.Free()
	}
	p, err := a.checkPadding(padding)
	if err == nil && value.Err() == nil && value.Size() != 1 {
		err = fmt.Errorf("the value has %d elements: it must be a scalar", value.Size())
	}
	if err != nil {
		return invalid(operandError(op, err, 0, a))
	}
	// The gradient of MLX's pad for the value has the shape of a (fault pad-value-gradient).
	var result *Array
	WithScope(func() {
		start, stop, shape := make([]int, len(p)), a.Shape(), a.Shape()
		for axis, n := range p {
			start[axis], stop[axis] = n.Before, n.Before+shape[axis]
			shape[axis] += n.Before + n.After
		}
		result = Full(a.DType(), value.Reshape(), shape...).SliceUpdate(a, start, stop, nil).Keep()
	})
	return result
}

// PadEdge repeats the first and the last element of the given axes around them.
func (a *Array) PadEdge(padding ...Padding) *Array {
	return a.padWithOwn(padding, func(i *Array, n int64) *Array {
		return i.Maximum(Scalar(int64(0))).Minimum(Scalar(n - 1))
	})
}

// PadReflect mirrors the given axes at their first and last elements, without repeating these. With 2 elements on
// either side, 0 1 2 becomes 2 1 0 1 2 1 0.
func (a *Array) PadReflect(padding ...Padding) *Array {
	return a.padWithOwn(padding, func(i *Array, n int64) *Array {
		period := Scalar(max(2*n-2, 1))
		i = i.Remainder(period)
		return i.Minimum(period.Sub(i))
	})
}

// PadSymmetric mirrors the given axes beyond their first and last elements, repeating these. With 2 elements on either
// side, 0 1 2 becomes 1 0 0 1 2 2 1.
func (a *Array) PadSymmetric(padding ...Padding) *Array {
	return a.padWithOwn(padding, func(i *Array, n int64) *Array {
		i = i.Remainder(Scalar(2 * n))
		return i.Minimum(Scalar(2*n - 1).Sub(i))
	})
}

// padWithOwn pads with elements of a. position maps positions from −Before to n+After−1 to positions in 0 … n−1. MLX's
// modes for this have wrong gradients and fail under vmap.
func (a *Array) padWithOwn(padding []Padding, position func(i *Array, n int64) *Array) *Array {
	const op = "pad"
	p, err := a.checkPadding(padding)
	if err != nil {
		return invalid(operandError(op, err, 0, a))
	}
	shape := a.Shape()
	var padded *Array
	WithScope(func() {
		padded = a.Index()
		for axis, around := range p {
			n := shape[axis]
			if around.Before+around.After == 0 {
				continue
			}
			if n == 0 {
				padded = invalid(opError(op, fmt.Errorf("axis %d has no elements to pad with", axis), a))
				break
			}
			i := Arange(Int64, float64(-around.Before), float64(n+around.After), 1)
			padded = mlxTakeAxis(padded, position(i, int64(n)), axis)
		}
		padded.Keep()
	})
	return padded
}

// checkPadding returns the total padding of each axis.
func (a *Array) checkPadding(padding []Padding) ([]Padding, error) {
	if err := a.Err(); err != nil {
		return nil, err
	}
	shape := a.Shape()
	all := make([]Padding, len(shape))
	for _, p := range padding {
		i, err := a.axis(p.Axis)
		switch {
		case err != nil:
			return nil, err
		case p.Before < 0 || p.After < 0:
			return nil, fmt.Errorf("axis %d: %d elements before and %d after: both must be at least 0", p.Axis,
				p.Before, p.After)
		case p.Before > math.MaxInt32 || p.After > math.MaxInt32:
			return nil, fmt.Errorf("axis %d: %w", p.Axis, check32(p.Before, p.After))
		}
		all[i].Before += p.Before
		all[i].After += p.After
	}
	for i, p := range all {
		shape[i] += p.Before + p.After
	}
	_, err := checkShape(a.DType(), shape)
	return all, err
}
