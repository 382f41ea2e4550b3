package mlxc

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// MLX's slices take lists of starts, stops and strides, with an entry for every axis, and silently end at the end of an
// axis. Index, SetAt and similar methods take one Index per axis instead, and check its positions like the bounds of a
// Go slice.

// Index selects positions along one axis of an array, for Array.Index, SetAt and similar methods. The zero value is
// All.
type Index struct {
	kind           indexKind
	from, to, step int
	ids            *Array
}

type indexKind int

const (
	indexAll indexKind = iota
	indexRange
	indexAt
	indexIDs
	indexNew
	indexRest
)

// End is the end of an axis of any size, for Range.
const End = math.MaxInt

var (
	// All selects the whole axis.
	All = Index{}
	// Rest stands for one All per remaining axis. A list may contain one Rest; at the end of a list it may be omitted.
	Rest = Index{kind: indexRest}
	// NewAxis inserts an axis of size 1 into the result and consumes no axis of the array.
	NewAxis = Index{kind: indexNew}
)

// At selects one position and removes the axis; a negative i counts from the end.
func At(i int) Index { return Index{kind: indexAt, from: i} }

// Range selects the positions from, from+1, …, to−1, as a[from:to] in Go. Negative positions count from the end. End
// stands for the end of the axis.
func Range(from, to int) Index { return Index{kind: indexRange, from: from, to: to} }

// Step selects every n-th position of All or of a Range: from the first position on, or from the last position backward
// if n is negative. All.Step(-1) reverses the axis.
func (i Index) Step(n int) Index {
	if n == 0 {
		n = math.MinInt // the invalid step 0; the zero value of the field means no step
	}
	i.step = n
	return i
}

// IDs selects the positions listed in an integer array, in the array's order and with repetitions. Several IDs in one
// list are broadcast against each other and select elements jointly: each gives the position along its own axis. In the
// result, the axes of the broadcast ids replace the axis of the first IDs, and the axes of the other IDs are removed.
// Negative ids count from the end. Ids out of range are handled as in Take.
func IDs(ids *Array) Index { return Index{kind: indexIDs, ids: ids} }

// Index returns the selected elements. The first Index applies to axis 0; axes beyond the list are taken whole. For a
// of shape (2,3,4):
//
//	a.Index(At(-1))                      // the last matrix, (3,4)
//	a.Index(All, Range(1, End))          // without the first row of each matrix, (2,2,4)
//	a.Index(Rest, At(0))                 // the first column of each matrix, (2,3)
//	a.Index(All, All.Step(-1), NewAxis)  // rows in reverse order, (2,3,1,4)
//	a.Index(At(0), IDs(i), IDs(j))       // the elements a[0,i,j], in the shape of i and j
//
// Without IDs nothing is copied. A position out of range is an error.
func (a *Array) Index(at ...Index) *Array {
	const op = "index"
	if err := a.Err(); err != nil {
		return invalid(operandError(op, err, 0, a))
	}
	c, err := a.planIndex(at)
	if err != nil {
		return invalid(opError(op, err, c.operands(a)...))
	}
	ids, free, err := c.limitIDs(a)
	if err != nil {
		return invalid(opError(op, err, c.operands(a)...))
	}
	defer free()
	x := mlxSlice(a, c.start, c.stop, c.strides)
	then := func(next *Array) {
		x.Free()
		x = next
	}
	if len(c.ids) > 0 {
		sizes := x.Shape()
		for _, axis := range c.idAxes {
			sizes[axis] = min(sizes[axis], 1)
		}
		then(mlxGather(x, ids, c.idAxes, sizes))
	}
	if len(c.squeezed) > 0 {
		then(x.Squeeze(c.squeezed...))
	}
	if c.order != nil {
		then(x.Transpose(c.order...))
	}
	if len(c.expanded) > 0 {
		then(x.ExpandDims(c.expanded...))
	}
	return x
}

// SetAt returns a copy of a with update at the elements that Index selects. update is broadcast to the shape of
// a.Index(at...) and converted to a's dtype. If ids name an element more than once, an unspecified one of its updates
// remains, and the gradient flows to all of them.
func (a *Array) SetAt(update *Array, at ...Index) *Array {
	return a.updateAt("set_at", update, at, mlxSliceUpdate, mlxScatter)
}

// AddAt is SetAt that adds the update to the selected elements. If ids name an element more than once, all its updates
// are added. The gradient of Index is AddAt of the cotangent to zeros.
func (a *Array) AddAt(update *Array, at ...Index) *Array {
	return a.updateAt("add_at", update, at, mlxSliceUpdateAdd, mlxScatterAdd)
}

// MulAt is SetAt that multiplies the selected elements by the update. If ids name an element more than once, it is
// multiplied by all its updates.
func (a *Array) MulAt(update *Array, at ...Index) *Array {
	return a.updateAt("mul_at", update, at, mlxSliceUpdateProd, mlxScatterProd)
}

// MaximumAt is SetAt with the maximum of the element and its update; NaN if either is NaN. If ids name an element more
// than once, the maximum is over all its updates.
func (a *Array) MaximumAt(update *Array, at ...Index) *Array {
	return a.updateAt("maximum_at", update, at, mlxSliceUpdateMax, keepNaN(mlxScatterMax))
}

// MinimumAt is SetAt with the minimum of the element and its update; NaN if either is NaN. If ids name an element more
// than once, the minimum is over all its updates.
func (a *Array) MinimumAt(update *Array, at ...Index) *Array {
	return a.updateAt("minimum_at", update, at, mlxSliceUpdateMin, keepNaN(mlxScatterMin))
}

type scatterFunc = func(a *Array, ids []*Array, updates *Array, axes []int) *Array

// keepNaN returns a scatter that stores a NaN where the element or an update is NaN (fault scatter-max-nan).
func keepNaN(f scatterFunc) scatterFunc {
	return func(a *Array, ids []*Array, updates *Array, axes []int) *Array {
		result := f(a, ids, updates, axes)
		if result.Err() != nil || a.DType().exact() {
			return result
		}
		isNaN := func(x *Array) *Array { return x.StopGradient().AsType(a.DType()).IsNaN().AsType(Int32) }
		found := mlxScatterMax(isNaN(a), ids, isNaN(updates), axes).EqualScalar(1)
		return Where(found, Scalar(float32(math.NaN())).AsType(a.DType()), result)
	}
}

func (a *Array) updateAt(
	op string, update *Array, at []Index,
	slice func(a, update *Array, start, stop, strides []int) *Array,
	scatter scatterFunc,
) *Array {
	for i, x := range []*Array{a, update} {
		if err := x.Err(); err != nil {
			return invalid(operandError(op, err, i, a, update))
		}
	}
	c, err := a.planIndex(at)
	operands := append(c.operands(a), update)
	if err == nil {
		err = broadcastInto(update.Shape(), c.shape)
		if err != nil {
			err = fmt.Errorf("the selected elements have the shape %s: %w", shapeText(c.shape), err)
		}
	}
	if err != nil {
		return invalid(opError(op, err, operands...))
	}
	ids, free, err := c.limitIDs(a)
	if err != nil {
		return invalid(opError(op, err, operands...))
	}
	defer free()
	var result *Array
	WithScope(func() {
		// Undo the steps of Index, in reverse order.
		u := update.BroadcastTo(c.shape...)
		if len(c.expanded) > 0 {
			u = u.Squeeze(c.expanded...)
		}
		if c.order != nil {
			u = u.Transpose(inverse(c.order)...)
		}
		if len(c.squeezed) > 0 {
			u = u.ExpandDims(c.squeezed...)
		}
		switch {
		case len(c.ids) == 0:
			result = slice(a, u, c.start, c.stop, c.strides)
		case c.whole:
			result = scatter(a, ids, u, c.idAxes).zerosIfEmpty()
		default:
			part := mlxSlice(a, c.start, c.stop, c.strides)
			result = mlxSliceUpdate(a, scatter(part, ids, u, c.idAxes).zerosIfEmpty(), c.start, c.stop, c.strides)
		}
		result.Keep()
	})
	return result
}

// Rows iterates over axis 0; see Along.
func (a *Array) Rows() iter.Seq2[int, *Array] { return a.Along(0) }

// Along iterates over an axis. For each position it yields the position and the slice of a there, without the axis.
// Each slice is a new array, which the caller, its scope or the garbage collector frees. If a is invalid or the axis
// does not exist, Along yields one invalid array that carries the error.
func (a *Array) Along(axis int) iter.Seq2[int, *Array] {
	const op = "along"
	return func(yield func(int, *Array) bool) {
		i, err := a.axis(axis)
		if e := a.Err(); e != nil {
			err = e
		}
		if err != nil {
			yield(0, invalid(operandError(op, err, 0, a)))
			return
		}
		at := slices.Repeat([]Index{All}, i+1)
		for k := range a.Dim(i) {
			at[i] = At(k)
			if !yield(k, a.Index(at...)) {
				return
			}
		}
	}
}

// String formats the Index as a slice expression.
func (i Index) String() string {
	var s string
	switch i.kind {
	case indexAll:
		s = ":"
	case indexRange:
		s = fmt.Sprintf("%d:", i.from)
		if i.to != End {
			s += fmt.Sprint(i.to)
		}
	case indexAt:
		return fmt.Sprint(i.from)
	case indexIDs:
		return "ids " + describe(i.ids.Shape(), i.ids.DType())
	case indexNew:
		return "new axis"
	case indexRest:
		return "…"
	}
	switch i.step {
	case 0:
		return s
	case math.MinInt:
		return s + ":0"
	}
	return s + fmt.Sprintf(":%d", i.step)
}
