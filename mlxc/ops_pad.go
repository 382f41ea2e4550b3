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
	if value == nil {
		return a.padOwn("constant", padding)
	}
	return a.pad("constant", value, padding)
}

// PadEdge puts the first and the last element of the given axes around them.
func (a *Array) PadEdge(padding ...Padding) *Array { return a.padOwn("edge", padding) }

// PadReflect puts the elements of the given axes around them, mirrored at the first and
// the last one, which are not repeated: 0 1 2 becomes 2 1 0 1 2 1 0.
func (a *Array) PadReflect(padding ...Padding) *Array { return a.padOwn("reflect", padding) }

// PadSymmetric puts the elements of the given axes around them, mirrored behind the first
// and the last one, which are repeated: 0 1 2 becomes 1 0 0 1 2 2 1.
func (a *Array) PadSymmetric(padding ...Padding) *Array { return a.padOwn("symmetric", padding) }

// padOwn is for modes that need no value.
func (a *Array) padOwn(mode string, padding []Padding) *Array {
	zero := Zeros(Int8)
	defer zero.Free()
	return a.pad(mode, zero, padding)
}

func (a *Array) pad(mode string, value *Array, padding []Padding) *Array {
	const op = "pad"
	if err := a.Err(); err != nil {
		return invalid(operandError(op, err, 0, a))
	}
	fail := func(err error) *Array { return invalid(opError(op, err, a)) }
	if value.Err() == nil && value.Size() != 1 {
		return fail(fmt.Errorf("the value has %d elements: it must be a scalar", value.Size()))
	}
	shape := a.Shape()
	// All axes: MLX's modes take the n-th amounts for those of axis n.
	axes, before, after := make([]int, len(shape)), make([]int, len(shape)), make([]int, len(shape))
	for i := range axes {
		axes[i] = i
	}
	for _, p := range padding {
		i, err := a.axis(p.Axis)
		switch {
		case err != nil:
			return fail(err)
		case p.Before < 0 || p.After < 0:
			return fail(fmt.Errorf("axis %d: %d elements before and %d after: there must be 0 or more", p.Axis, p.Before, p.After))
		case p.Before > math.MaxInt32 || p.After > math.MaxInt32:
			return fail(fmt.Errorf("axis %d: %w", p.Axis, check32(p.Before, p.After)))
		case shape[i] == 0 && mode != "constant" && p.Before+p.After > 0:
			return fail(fmt.Errorf("axis %d has no elements to pad with", p.Axis))
		}
		before[i], after[i] = before[i]+p.Before, after[i]+p.After
	}
	padded := make([]int, len(shape))
	for i, n := range shape {
		padded[i] = before[i] + n + after[i]
	}
	if err := checkNew(a.DType(), padded); err != nil {
		return fail(err)
	}
	return mlxPad(a, axes, before, after, value, mode)
}
