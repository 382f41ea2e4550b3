package gomlx

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Gather selects windows of the operand. Positions out of range are limited to the range.
func (f *function) Gather(
	operand, startIndices backends.Value, indexVectorAxis int,
	offsetOutputAxes, collapsedSliceAxes, startIndexMap, sliceSizes []int, indicesAreSorted bool,
) (backends.Value, error) {
	return f.add1(backends.OpTypeGather, []backends.Value{operand, startIndices},
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			out, err := shapeinference.Gather(in[0], in[1], indexVectorAxis, offsetOutputAxes, collapsedSliceAxes, startIndexMap,
				sliceSizes, indicesAreSorted)
			if err == nil && len(startIndexMap) == 0 {
				err = fmt.Errorf("there are no indices: %w", backends.ErrNotImplemented)
			}
			return out, func(in []*mlxc.Array) *mlxc.Array {
				x := in[0]
				vectors := indexVectors(in[1], indexVectorAxis)
				ids := make([]*mlxc.Array, len(startIndexMap))
				for i, axis := range startIndexMap {
					ids[i] = vectors[i].Clip(0, x.Dim(axis)-sliceSizes[axis]).AsType(mlxc.Int32)
				}
				// The axes of the ids come first, then those of the windows.
				x = x.Gather(ids, startIndexMap, sliceSizes)
				batch := ids[0].NDim()
				if len(collapsedSliceAxes) > 0 {
					collapsed := make([]int, len(collapsedSliceAxes))
					for i, axis := range collapsedSliceAxes {
						collapsed[i] = batch + axis
					}
					x = x.Squeeze(collapsed...)
				}
				order := make([]int, x.NDim())
				nextBatch, nextOffset := 0, batch
				for axis := range order {
					next := &nextBatch
					if slices.Contains(offsetOutputAxes, axis) {
						next = &nextOffset
					}
					order[axis] = *next
					*next++
				}
				return transpose(x, order)
			}, err
		})
}

// indexVectors returns the components of vectors that lie along an axis of a. If the axis is one beyond the last, each
// element is a vector.
func indexVectors(a *mlxc.Array, axis int) []*mlxc.Array {
	if axis == a.NDim() {
		return []*mlxc.Array{a}
	}
	return a.Unstack(axis)
}

// scatter holds the geometry of ScatterSum, ScatterMax and ScatterMin.
type scatter struct {
	indexVectorAxis                                                int
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int
}

func (f *function) ScatterSum(
	operand, indices, updates backends.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, _, _ bool,
) (backends.Value, error) {
	g := scatter{indexVectorAxis, updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes}
	return f.scatter(backends.OpTypeScatterSum, operand, indices, updates, g, zeroOf, (*mlxc.Array).AddAt)
}

func (f *function) ScatterMax(
	operand, indices, updates backends.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, _, _ bool,
) (backends.Value, error) {
	g := scatter{indexVectorAxis, updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes}
	return f.scatter(backends.OpTypeScatterMax, operand, indices, updates, g, lowest, (*mlxc.Array).MaximumAt)
}

func (f *function) ScatterMin(
	operand, indices, updates backends.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, _, _ bool,
) (backends.Value, error) {
	g := scatter{indexVectorAxis, updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes}
	return f.scatter(backends.OpTypeScatterMin, operand, indices, updates, g, highest, (*mlxc.Array).MinimumAt)
}

func zeroOf(d mlxc.DType) *mlxc.Array { return mlxc.Zeros(d) }

type updateFunc = func(a, update *mlxc.Array, at ...mlxc.Index) *mlxc.Array

func (f *function) scatter(
	op backends.OpType, operand, indices, updates backends.Value, g scatter,
	identity func(mlxc.DType) *mlxc.Array, update updateFunc,
) (backends.Value, error) {
	return f.add1(op, []backends.Value{operand, indices, updates},
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			out, err := shapeinference.ScatterOp(in[0], in[1], in[2], g.indexVectorAxis, g.updateWindowAxes,
				g.insertedWindowAxes, g.scatterAxesToOperandAxes)
			return out, func(in []*mlxc.Array) *mlxc.Array { return g.run(in[0], in[1], in[2], identity, update) }, err
		})
}

// run views the operand as rows: the axes that the windows cover completely form a row, and the other axes count the
// rows. Each element of a window along the other axes updates a row. Windows that reach out of the operand have no
// effect: they update row 0 with the identity.
func (g scatter) run(
	x, indices, updates *mlxc.Array, identity func(mlxc.DType) *mlxc.Array, update updateFunc,
) *mlxc.Array {
	shape := x.Shape()
	window := onesShape(len(shape)) // sizes of a window along the operand's axes
	var windowAxes []int            // the operand's axes along which windows extend
	for axis := range shape {
		if !slices.Contains(g.insertedWindowAxes, axis) {
			window[axis] = updates.Dim(g.updateWindowAxes[len(windowAxes)])
			windowAxes = append(windowAxes, axis)
		}
	}
	var rowAxes, elementAxes []int
	for axis := range shape {
		if window[axis] == shape[axis] && !slices.Contains(g.scatterAxesToOperandAxes, axis) {
			elementAxes = append(elementAxes, axis)
		} else {
			rowAxes = append(rowAxes, axis)
		}
	}
	order := slices.Concat(rowAxes, elementAxes)
	rows, elements, windowRows := 1, 1, 1
	strides := make([]int, len(shape)) // of the operand's axes, in rows
	for _, axis := range slices.Backward(rowAxes) {
		strides[axis] = rows
		rows *= shape[axis]
		windowRows *= window[axis]
	}
	for _, axis := range elementAxes {
		elements *= shape[axis]
	}

	// The first row of each window, and whether the window lies within the operand.
	first, inside := mlxc.Scalar[int32](0), mlxc.Scalar(true)
	vectors := indexVectors(indices, g.indexVectorAxis)
	for i, axis := range g.scatterAxesToOperandAxes {
		id := vectors[i].AsType(mlxc.Int32)
		first = first.Add(id.MulScalar(strides[axis]))
		inside = inside.LogicalAnd(id.GreaterEqualScalar(0)).LogicalAnd(id.LessEqualScalar(shape[axis] - window[axis]))
	}
	windows := vectors[0].Size()
	first, inside = first.Reshape(windows, 1), inside.Reshape(windows, 1)

	// The rows of a window, relative to its first.
	offsets := mlxc.Zeros(mlxc.Int32, 1)
	for _, axis := range rowAxes {
		steps := mlxc.Arange(mlxc.Int32, 0, float64(window[axis]), 1).MulScalar(strides[axis])
		offsets = offsets.ExpandDims(-1).Add(steps).Flatten(0, -1)
	}

	// The updates as (windows, rows of a window, elements of a row).
	var updateOrder []int
	for axis := range updates.NDim() {
		if !slices.Contains(g.updateWindowAxes, axis) {
			updateOrder = append(updateOrder, axis)
		}
	}
	for _, axis := range order {
		if i := slices.Index(windowAxes, axis); i >= 0 {
			updateOrder = append(updateOrder, g.updateWindowAxes[i])
		}
	}
	updates = transpose(updates, updateOrder).Reshape(windows, windowRows, elements)

	updates = mlxc.Where(inside.ExpandDims(-1), updates, identity(x.DType()))
	ids := mlxc.Where(inside, first.Add(offsets), mlxc.Scalar[int32](0))
	x = update(transpose(x, order).Reshape(rows, elements), updates, mlxc.IDs(ids))

	ordered, inverse := make([]int, len(order)), make([]int, len(order))
	for i, axis := range order {
		ordered[i], inverse[axis] = shape[axis], i
	}
	return transpose(x.Reshape(ordered...), inverse)
}

// DynamicSlice returns a window of the operand. Its position is limited so that the window lies within the operand.
func (f *function) DynamicSlice(operand backends.Value, starts []backends.Value, sizes []int) (backends.Value, error) {
	return f.add1(backends.OpTypeDynamicSlice, append([]backends.Value{operand}, starts...),
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			x := in[0]
			if err := checkWindow(x, in[1:], sizes); err != nil {
				return x, nil, err
			}
			out := shapes.Shape{DType: x.DType, Dimensions: slices.Clone(sizes)}
			return out, func(in []*mlxc.Array) *mlxc.Array {
				if len(sizes) == 0 {
					return in[0]
				}
				return in[0].SliceDynamic(startVector(in[1:]), allAxes(len(sizes)), sizes)
			}, nil
		})
}

// DynamicUpdateSlice replaces a window of the operand. Its position is limited so that it lies within the operand.
func (f *function) DynamicUpdateSlice(operand, update backends.Value, starts []backends.Value) (backends.Value, error) {
	return f.add1(backends.OpTypeDynamicUpdateSlice, append([]backends.Value{operand, update}, starts...),
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			x := in[0]
			if in[1].DType != x.DType {
				return x, nil, fmt.Errorf("the update has the dtype %v; it must have the operand's, %v", in[1].DType, x.DType)
			}
			return x, func(in []*mlxc.Array) *mlxc.Array {
				if in[0].NDim() == 0 {
					return in[1]
				}
				return in[0].SliceUpdateDynamic(in[1], startVector(in[2:]), allAxes(in[0].NDim()))
			}, checkWindow(x, in[2:], in[1].Dimensions)
		})
}

// checkWindow checks the size of a window of x, and its position: a scalar per axis, or one vector.
func checkWindow(x shapes.Shape, starts []shapes.Shape, sizes []int) error {
	if len(sizes) != x.Rank() {
		return fmt.Errorf("the window has %d axes; the operand has the shape %v", len(sizes), x)
	}
	for axis, n := range sizes {
		if n < 0 || n > x.Dimensions[axis] {
			return fmt.Errorf("the window has %d elements along axis %d; the operand has the shape %v", n, axis, x)
		}
	}
	for _, s := range starts {
		if !s.DType.IsInt() {
			return fmt.Errorf("the position has the dtype %v; it must be an integer", s.DType)
		}
	}
	scalars := !slices.ContainsFunc(starts, func(s shapes.Shape) bool { return !s.IsScalar() })
	vector := len(starts) == 1 && starts[0].Rank() == 1 && starts[0].Dimensions[0] == x.Rank()
	if !vector && !(scalars && len(starts) == x.Rank()) {
		return fmt.Errorf("the position has the shapes %v; it must be a scalar for each of the %d axes", starts, x.Rank())
	}
	return nil
}

func startVector(starts []*mlxc.Array) *mlxc.Array {
	if starts[0].NDim() == 1 {
		return starts[0].AsType(mlxc.Int32)
	}
	for i, s := range starts {
		starts[i] = s.AsType(mlxc.Int32)
	}
	return mlxc.Stack(0, starts...)
}
