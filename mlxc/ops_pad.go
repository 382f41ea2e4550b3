package mlxc

import (
	"fmt"
	"math"
)

// Padding is what is put around one axis of an array.
type Padding struct {
	Axis          int // counted from the end if negative
	Before, After int // how many elements
}

// Pad puts value, a scalar, around the given axes; nil stands for 0. It is converted to a's
// dtype. Several entries for one axis add up.
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
	// Not by MLX's pad, which has no rule for Vmap, and no gradient for the value.
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

// PadEdge puts the first and the last element of the given axes around them.
func (a *Array) PadEdge(padding ...Padding) *Array {
	return a.padWithOwn(padding, func(i *Array, n int64) *Array {
		return i.Maximum(Scalar(int64(0))).Minimum(Scalar(n - 1))
	})
}

// PadReflect puts the elements of the given axes around them, mirrored at the first and
// the last one, which are not repeated: 0 1 2 becomes 2 1 0 1 2 1 0.
func (a *Array) PadReflect(padding ...Padding) *Array {
	return a.padWithOwn(padding, func(i *Array, n int64) *Array {
		period := Scalar(max(2*n-2, 1))
		i = i.Remainder(period)
		return i.Minimum(period.Sub(i))
	})
}

// PadSymmetric puts the elements of the given axes around them, mirrored behind the first
// and the last one, which are repeated: 0 1 2 becomes 1 0 0 1 2 2 1.
func (a *Array) PadSymmetric(padding ...Padding) *Array {
	return a.padWithOwn(padding, func(i *Array, n int64) *Array {
		i = i.Remainder(Scalar(2 * n))
		return i.Minimum(Scalar(2*n - 1).Sub(i))
	})
}

// padWithOwn pads with the elements of a that position names, for positions from below 0 to
// beyond the n of an axis. MLX has modes for that, but their gradients are wrong and they
// fail under vmap.
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

// checkPadding gives what is put around each axis of a.
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
			return nil, fmt.Errorf("axis %d: %d elements before and %d after: there must be 0 or more", p.Axis, p.Before, p.After)
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
