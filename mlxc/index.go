package mlxc

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// Why one list of Index values, and not MLX's lists of starts, stops and strides: those
// name every axis three times, and hide an index that is out of range, since a slice of
// MLX ends where the axis does. An Index says what happens to one axis, and reads the
// same where elements are taken and where they are replaced. Positions that Go knows are
// checked as Go checks those of a slice.

// Index chooses positions along one axis of an array, for Index, SetAt and their like. The
// zero Index is All.
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

// End is the end of an axis, whatever its size, for Range.
const End = math.MaxInt

var (
	// All chooses the whole axis.
	All = Index{}
	// Rest stands for as many times All as there are axes left. It may be in the list once;
	// at its end it can be left out.
	Rest = Index{kind: indexRest}
	// NewAxis stands for no axis: it puts one of size 1 into the result.
	NewAxis = Index{kind: indexNew}
)

// At chooses one position, which is counted from the end if it is negative. The result
// lacks the axis.
func At(i int) Index { return Index{kind: indexAt, from: i} }

// Range chooses the positions from … to−1, like Go's from:to. Negative ones count from the
// end; End is the end.
func Range(from, to int) Index { return Index{kind: indexRange, from: from, to: to} }

// Step chooses every n-th position of All or of a Range, from the first one on, or if n is
// negative from the last one back: All.Step(-1) reverses the axis.
func (i Index) Step(n int) Index {
	if n == 0 {
		n = math.MinInt // 0 is that of an Index without one; this is none either
	}
	i.step = n
	return i
}

// IDs chooses positions that an array of integers names, in its order and as often as it
// names them. Several in one list are broadcast to each other and name elements together:
// the first one their position along its axis, the second along its. The axes of ids
// stand in the result where the first of them is in the list. Ids below 0 count from the
// end. Ids out of range are treated as in Take.
func IDs(ids *Array) Index { return Index{kind: indexIDs, ids: ids} }

// Index takes the chosen elements: the first Index is for axis 0, and axes beyond the list
// are taken whole. So in a of shape (2,3,4)
//
//	a.Index(At(-1))                      // the last matrix, (3,4)
//	a.Index(All, Range(1, End))          // without the first rows, (2,2,4)
//	a.Index(Rest, At(0))                 // the first column of each, (2,3)
//	a.Index(All, All.Step(-1), NewAxis)  // rows backwards, (2,3,1,4)
//	a.Index(At(0), IDs(i), IDs(j))       // the elements a[0,i,j], in the shape of i and j
//
// Without IDs nothing is copied. A position that is not there is an error.
func (a *Array) Index(at ...Index) *Array {
	const op = "index"
	if err := a.Err(); err != nil {
		return invalid(operandError(op, err, 0, a))
	}
	c, err := a.choose(at)
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
	if len(c.gone) > 0 {
		then(x.Squeeze(c.gone...))
	}
	if c.order != nil {
		then(x.Transpose(c.order...))
	}
	if len(c.fresh) > 0 {
		then(x.ExpandDims(c.fresh...))
	}
	return x
}

// SetAt returns a copy of a in which update stands at the elements that Index chooses.
// update is broadcast to what Index gives and converted to a's dtype. If ids name an
// element more than once, one of its updates is the one that stays; the gradient then
// counts all of them.
func (a *Array) SetAt(update *Array, at ...Index) *Array {
	return a.updateAt("set_at", update, at, mlxSliceUpdate, mlxScatter)
}

// AddAt is SetAt with the sum of the element and its update; all of them, if ids name an
// element more than once. It is the gradient of Index.
func (a *Array) AddAt(update *Array, at ...Index) *Array {
	return a.updateAt("add_at", update, at, mlxSliceUpdateAdd, mlxScatterAdd)
}

// MulAt is SetAt with the product of the element and its update; all of them, if ids name
// an element more than once.
func (a *Array) MulAt(update *Array, at ...Index) *Array {
	return a.updateAt("mul_at", update, at, mlxSliceUpdateProd, mlxScatterProd)
}

// MaximumAt is SetAt with the larger one of the element and its update; the largest, if
// ids name an element more than once.
func (a *Array) MaximumAt(update *Array, at ...Index) *Array {
	return a.updateAt("maximum_at", update, at, mlxSliceUpdateMax, mlxScatterMax)
}

// MinimumAt is SetAt with the smaller one of the element and its update; the smallest, if
// ids name an element more than once.
func (a *Array) MinimumAt(update *Array, at ...Index) *Array {
	return a.updateAt("minimum_at", update, at, mlxSliceUpdateMin, mlxScatterMin)
}

func (a *Array) updateAt(
	op string, update *Array, at []Index,
	slice func(a, update *Array, start, stop, strides []int) *Array,
	scatter func(a *Array, ids []*Array, updates *Array, axes []int) *Array,
) *Array {
	for i, x := range []*Array{a, update} {
		if err := x.Err(); err != nil {
			return invalid(operandError(op, err, i, a, update))
		}
	}
	c, err := a.choose(at)
	operands := append(c.operands(a), update)
	if err == nil {
		err = broadcastInto(update.Shape(), c.shape)
		if err != nil {
			err = fmt.Errorf("what is chosen has the shape %s: %w", shapeText(c.shape), err)
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
		// The way back from what Index gives.
		u := update.BroadcastTo(c.shape...)
		if len(c.fresh) > 0 {
			u = u.Squeeze(c.fresh...)
		}
		if c.order != nil {
			u = u.Transpose(inverse(c.order)...)
		}
		if len(c.gone) > 0 {
			u = u.ExpandDims(c.gone...)
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

// Rows is Along the first axis.
func (a *Array) Rows() iter.Seq2[int, *Array] { return a.Along(0) }

// Along ranges over the positions of an axis, with the slices there, which lack the axis.
// They are arrays like others, each to be freed on its own, with its scope or by the
// collector. Of an invalid array, or an axis that is not there, it gives one invalid array,
// so that its error is not lost.
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

// String writes the Index as a slice expression.
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
