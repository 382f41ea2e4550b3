package gomlx

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Sort sorts the inputs together. The comparator has two scalar parameters for each input, side by side, and reports
// whether the first elements come before the second ones. Every sort is stable.
func (f *function) Sort(
	comparator backends.Function, axis int, _ bool, inputs ...backends.Value,
) ([]backends.Value, error) {
	const op = backends.OpTypeSort
	fail := func(err error) ([]backends.Value, error) { return nil, fmt.Errorf("gomlx: %v: %w", op, err) }
	less, err := f.asCallee("comparator", comparator, true)
	if err != nil {
		return fail(err)
	}
	in, err := f.resolve(inputs)
	if err != nil {
		return fail(err)
	}
	if len(in) == 0 {
		return fail(fmt.Errorf("there are no inputs"))
	}
	var params []shapes.Shape
	for _, v := range in {
		if !v.shape.EqualDimensions(in[0].shape) {
			return fail(fmt.Errorf("the inputs are %v; they must have the same dimensions", shapesOf(in)))
		}
		scalar := shapes.Make(v.shape.DType)
		params = append(params, scalar, scalar)
	}
	if axis < 0 {
		axis += in[0].shape.Rank()
	}
	if axis < 0 || axis >= in[0].shape.Rank() {
		return fail(fmt.Errorf("the axis is %d; it must be an axis of %v", axis, in[0].shape))
	}
	if err := checkSignature("parameters of the comparator", less.parameters, params); err != nil {
		return fail(err)
	}
	if len(less.outputs) != 1 || !isPredicate(less.outputs[0].shape) {
		return fail(fmt.Errorf("the outputs of the comparator are %v; it must have one, a boolean scalar",
			shapesOf(less.outputs)))
	}
	if less.dynamic {
		return fail(fmt.Errorf("the comparator contains If or While: %w", backends.ErrNotImplemented))
	}
	n := len(in)
	run := func(in []*mlxc.Array) ([]*mlxc.Array, error) { return sortBy(less, axis, in[:n], in[n:]), nil }
	return f.addCall(op, slices.Concat(inputs, captured(less)), shapesOf(in), false, run)
}

func sortBy(less *function, axis int, inputs, captures []*mlxc.Array) []*mlxc.Array {
	if inputs[0].Size() == 0 {
		return inputs
	}
	if key, descending, ok := less.sortKey(); ok {
		x := inputs[key]
		if x.DType() == mlxc.Bool {
			x = x.AsType(mlxc.Uint8)
		}
		if descending && x.DType().IsInteger() {
			x = x.BitwiseInvert()
		} else if descending {
			x = x.Neg()
		}
		order := x.ArgSort(axis)
		out := make([]*mlxc.Array, len(inputs))
		for i, a := range inputs {
			out[i] = a.TakeAlongAxis(order, axis)
		}
		return out
	}
	return sortNetwork(less, axis, inputs, captures)
}

// sortKey reports whether the comparator only compares the elements of one input, and which.
func (f *function) sortKey() (input int, descending, ok bool) {
	if len(f.live) != 1 || f.live[0].out[0] != f.outputs[0] {
		return 0, false, false
	}
	s := f.live[0]
	if s.op != backends.OpTypeLessThan && s.op != backends.OpTypeGreaterThan {
		return 0, false, false
	}
	first, second := slices.Index(f.parameters, s.in[0]), slices.Index(f.parameters, s.in[1])
	if first < 0 || second < 0 || first/2 != second/2 || first == second {
		return 0, false, false
	}
	return first / 2, (s.op == backends.OpTypeGreaterThan) != (first > second), true
}

// sortNetwork sorts by any comparator with Batcher's odd-even merge sort (Batcher, "Sorting networks and their
// applications", 1968): (log₂ n)·(log₂ n + 1)/2 stages, each of which compares disjoint pairs of positions at once. The
// original positions decide between equal elements.
func sortNetwork(less *function, axis int, inputs, captures []*mlxc.Array) []*mlxc.Array {
	n := inputs[0].Dim(axis)
	last := inputs[0].NDim() - 1
	columns := make([]*mlxc.Array, len(inputs), len(inputs)+1)
	for i, a := range inputs {
		columns[i] = a.MoveAxis(axis, last)
	}
	positions := mlxc.Arange(mlxc.Int32, 0, float64(n), 1).BroadcastTo(columns[0].Shape()...)
	columns = append(columns, positions)
	for p := 1; p < n; p *= 2 {
		for k := p; k >= 1; k /= 2 {
			partner, first := partners(n, p, k)
			columns = exchange(less, columns, captures, partner, first)
		}
	}
	out := make([]*mlxc.Array, len(inputs))
	for i := range inputs {
		out[i] = columns[i].MoveAxis(last, axis)
	}
	return out
}

// partners returns for each position the position with which a stage of the network compares it, or the position
// itself, and whether it is the first of the two.
func partners(n, p, k int) (partner []int32, first []bool) {
	partner, first = make([]int32, n), make([]bool, n)
	for i := range partner {
		partner[i] = int32(i)
	}
	for j := k % p; j < n-k; j += 2 * k {
		for i := j; i < min(j+k, n-k); i++ {
			if i/(2*p) == (i+k)/(2*p) {
				partner[i], partner[i+k], first[i] = int32(i+k), int32(i), true
			}
		}
	}
	return partner, first
}

// exchange puts the smaller element of each pair first, by the comparator and then by the last column.
func exchange(less *function, columns, captures []*mlxc.Array, partner []int32, first []bool) []*mlxc.Array {
	last := columns[0].NDim() - 1
	others := make([]*mlxc.Array, len(columns))
	for i, c := range columns {
		others[i] = c.Take(mlxc.FromSlice(partner), last)
	}
	otherLess := compareElements(less, others, columns, captures)
	thisLess := compareElements(less, columns, others, captures)
	n := len(columns) - 1
	before := otherLess.LogicalOr(thisLess.LogicalNot().LogicalAnd(others[n].Less(columns[n])))
	swap := before.Equal(mlxc.FromSlice(first))
	out := make([]*mlxc.Array, len(columns))
	for i, c := range columns {
		out[i] = mlxc.Where(swap, others[i], c)
	}
	return out
}

// compareElements calls the comparator on the elements of two lists of columns. The last column is not a parameter.
func compareElements(less *function, first, second, captures []*mlxc.Array) *mlxc.Array {
	var args []*mlxc.Array
	for i := range len(first) - 1 {
		args = append(args, first[i].Flatten(0, -1), second[i].Flatten(0, -1))
	}
	axes := make([]int, len(args))
	for range captures {
		axes = append(axes, mlxc.Unmapped)
	}
	return mlxc.Vmap(less.trace, axes, nil)(append(args, captures...))[0].Reshape(first[0].Shape()...)
}
