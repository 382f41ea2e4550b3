package mlxc

import (
	"errors"
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
			result = scatter(a, ids, u, c.idAxes).orNothing()
		default:
			part := mlxSlice(a, c.start, c.stop, c.strides)
			result = mlxSliceUpdate(a, scatter(part, ids, u, c.idAxes).orNothing(), c.start, c.stop, c.strides)
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

// choice is what a list of Index values means for one array.
type choice struct {
	start, stop, strides []int // of the slice, which has all axes
	whole                bool  // it is the array

	ids    []*Array // then come ids, along these axes of the slice
	idAxes []int

	gone  []int // then axes of size 1 go,
	order []int // the others change their order, if not nil,
	fresh []int // and new ones come
	shape []int // of the result
}

func (c choice) operands(a *Array) []*Array { return append([]*Array{a}, c.ids...) }

// limitIDs gives c's ids as MLX may use them.
func (c choice) limitIDs(a *Array) (limited []*Array, free func(), err error) {
	return limitAll(c.ids,
		func(i int) int { return a.Dim(c.idAxes[i]) },
		func(i int) int { return a.Dim(c.idAxes[i]) - 1 })
}

func (a *Array) choose(at []Index) (c choice, err error) {
	shape := a.Shape()
	if at, err = expandRest(at, len(shape)); err != nil {
		return c, err
	}
	var idShape []int
	for _, x := range at {
		if x.kind != indexIDs {
			continue
		}
		c.ids = append(c.ids, x.ids)
		if err := x.ids.Err(); err != nil {
			return choice{}, fmt.Errorf("the ids: %w", err)
		}
		if err := checkIDs(x.ids); err != nil {
			return c, err
		}
		if idShape, err = broadcastShapes(idShape, x.ids.Shape()); err != nil {
			return c, fmt.Errorf("the ids: %w", err)
		}
	}
	c.whole = true
	axis := 0
	var before, after []int // the axes of the slice that stay, before and after those of the ids
	idPlace := -1           // of the ids' axes in the result
	for _, x := range at {
		if x.kind == indexNew {
			c.fresh = append(c.fresh, len(c.shape))
			c.shape = append(c.shape, 1)
			continue
		}
		start, stop, stride, n, err := x.positions(shape[axis])
		if err != nil {
			return c, fmt.Errorf("axis %d: %w", axis, err)
		}
		c.start, c.stop, c.strides = append(c.start, start), append(c.stop, stop), append(c.strides, stride)
		c.whole = c.whole && n == shape[axis] && stride == 1
		switch x.kind {
		case indexAt:
			c.gone = append(c.gone, len(idShape)+axis)
		case indexIDs:
			c.gone = append(c.gone, len(idShape)+axis)
			c.idAxes = append(c.idAxes, axis)
			if idPlace < 0 {
				idPlace = len(c.shape)
				c.shape = append(c.shape, idShape...)
			}
		default:
			c.shape = append(c.shape, n)
			if idPlace < 0 {
				before = append(before, axis)
			} else {
				after = append(after, axis)
			}
		}
		axis++
	}
	if len(before) > 0 && len(c.ids) > 0 {
		// MLX puts the ids' axes in front.
		for i := range before {
			c.order = append(c.order, len(idShape)+i)
		}
		for i := range idShape {
			c.order = append(c.order, i)
		}
		for i := range after {
			c.order = append(c.order, len(idShape)+len(before)+i)
		}
	}
	_, err = checkShape(a.DType(), c.shape)
	return c, err
}

// expandRest makes a list with one Index for every axis, beside those for new ones.
func expandRest(at []Index, axes int) ([]Index, error) {
	rest, named := len(at), 0
	for i, x := range at {
		switch x.kind {
		case indexRest:
			if rest < len(at) {
				return nil, errors.New("there is more than one Rest")
			}
			rest = i
		case indexNew:
		default:
			named++
		}
	}
	if named > axes {
		return nil, fmt.Errorf("there are %d indices, but %d axes", named, axes)
	}
	return slices.Concat(at[:rest], slices.Repeat([]Index{All}, axes-named), at[min(rest+1, len(at)):]), nil
}

// positions gives the slice of an axis of size n, and its size.
func (i Index) positions(n int) (start, stop, stride, size int, err error) {
	if i.step != 0 && i.kind != indexAll && i.kind != indexRange {
		return 0, 0, 0, 0, errors.New("only All and a Range have a step")
	}
	fromEnd := func(k int) int {
		if k < 0 {
			return k + n
		}
		return k
	}
	switch i.kind {
	case indexIDs:
		return 0, n, 1, n, nil
	case indexAt:
		if i.from < -n || i.from >= n {
			return 0, 0, 0, 0, fmt.Errorf("there is no position %d: the axis has %d", i.from, n)
		}
		k := fromEnd(i.from)
		return k, k + 1, 1, 1, nil
	}
	from, to := 0, n
	if i.kind == indexRange {
		from, to = fromEnd(i.from), fromEnd(i.to)
		if i.from == End {
			from = n
		}
		if i.to == End {
			to = n
		}
		if from < 0 || to < from || to > n {
			return 0, 0, 0, 0, fmt.Errorf("there are no positions %s: the axis has %d", i, n)
		}
	}
	step := i.step
	switch step {
	case math.MinInt:
		return 0, 0, 0, 0, errors.New("the step is 0")
	case 0:
		step = 1
	}
	switch {
	case from == to:
		return 0, 0, 1, 0, nil
	case step > 0:
		size = 1 + (to-from-1)/step
		return from, to, clampStride(step, n), size, nil
	}
	stop = from - 1
	if stop < 0 {
		stop = -n - 1 // −1 would be the last position
	}
	size = 1 + (to-from-1)/-step
	return to - 1, stop, clampStride(step, n), size, nil
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

// broadcastShapes gives the shape that arrays of both shapes are broadcast to.
func broadcastShapes(a, b []int) ([]int, error) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i, n := range b {
		k := len(a) - len(b) + i
		switch {
		case out[k] == n || n == 1:
		case out[k] == 1:
			out[k] = n
		default:
			return nil, fmt.Errorf("the shapes %s and %s cannot be broadcast to each other", shapeText(a), shapeText(b))
		}
	}
	return out, nil
}

// broadcastInto says if an array of one shape cannot be broadcast to another.
func broadcastInto(from, to []int) error {
	out, err := broadcastShapes(from, to)
	if err == nil && !slices.Equal(out, to) {
		err = fmt.Errorf("the shape %s cannot be broadcast to %s", shapeText(from), shapeText(to))
	}
	return err
}

// inverse gives the permutation that undoes one.
func inverse(order []int) []int {
	out := make([]int, len(order))
	for i, k := range order {
		out[k] = i
	}
	return out
}
