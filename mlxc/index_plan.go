package mlxc

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// indexPlan holds the MLX operations that apply an Index list to one array, in this order: slice, gather, squeeze,
// transpose, expand_dims.
type indexPlan struct {
	start, stop, strides []int // of the slice, one entry per axis
	whole                bool  // the slice is the whole array

	ids    []*Array // ids to gather
	idAxes []int    // for each of ids, its axis of the slice

	squeezed []int // axes of size 1 to remove
	order    []int // permutation of the axes, or nil
	expanded []int // axes of size 1 to insert
	shape    []int // shape of the result
}

func (c indexPlan) operands(a *Array) []*Array { return append([]*Array{a}, c.ids...) }

// limitIDs applies the function limitIDs to the ids of every axis.
func (c indexPlan) limitIDs(a *Array) (limited []*Array, free func(), err error) {
	return limitAll(c.ids,
		func(i int) int { return a.Dim(c.idAxes[i]) },
		func(i int) int { return a.Dim(c.idAxes[i]) - 1 })
}

// planIndex checks an Index list and returns its plan.
func (a *Array) planIndex(at []Index) (c indexPlan, err error) {
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
			return indexPlan{}, fmt.Errorf("the ids: %w", err)
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
	var before, after []int // the slice's axes without an At or IDs, before and after the first IDs
	idPlace := -1           // position of the ids' axes in the result
	for _, x := range at {
		if x.kind == indexNew {
			c.expanded = append(c.expanded, len(c.shape))
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
			c.squeezed = append(c.squeezed, len(idShape)+axis)
		case indexIDs:
			c.squeezed = append(c.squeezed, len(idShape)+axis)
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
		// A gather puts the ids' axes in front.
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

// expandRest replaces Rest by one All per remaining axis. The result has exactly one Index per axis, plus the NewAxis
// entries.
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

// positions returns the start, stop, stride and size of the slice for an axis of size n.
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
			return 0, 0, 0, 0, fmt.Errorf("there is no position %d: the axis has size %d", i.from, n)
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
			return 0, 0, 0, 0, fmt.Errorf("there are no positions %s: the axis has size %d", i, n)
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
		stop = -n - 1 // to MLX, -1 is the last position
	}
	size = 1 + (to-from-1)/-step
	return to - 1, stop, clampStride(step, n), size, nil
}

// inverse returns the inverse of a permutation.
func inverse(order []int) []int {
	out := make([]int, len(order))
	for i, k := range order {
		out[k] = i
	}
	return out
}
