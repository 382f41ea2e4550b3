package gomlx

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// windows holds the geometry of windows that move over an array. All lists have an entry per axis.
type windows struct {
	size, strides, dilations []int
	padding                  []backends.PadAxis
}

// newWindows replaces missing lists: strides by the sizes of the window, dilations by ones, paddings by zeros.
func newWindows(size, strides, baseDilations, dilations []int, paddings [][2]int) windows {
	w := windows{size, strides, dilations, make([]backends.PadAxis, len(size))}
	if len(w.strides) == 0 {
		w.strides = size
	}
	if len(w.dilations) == 0 {
		w.dilations = onesShape(len(size))
	}
	for i := range w.padding {
		if len(baseDilations) > 0 {
			w.padding[i].Interior = baseDilations[i] - 1
		}
		if len(paddings) > 0 {
			w.padding[i].Start, w.padding[i].End = paddings[i][0], paddings[i][1]
		}
	}
	return w
}

// view returns the elements of all windows over a padded array. The axes of the windows' positions come first, then the
// axes of a window.
func (w windows) view(x *mlxc.Array) *mlxc.Array {
	shape := x.Shape()
	rank := len(shape)
	out, strides := make([]int, 2*rank), make([]int, 2*rank)
	n := 1
	for axis, size := range slices.Backward(shape) {
		out[axis] = (size-(w.size[axis]-1)*w.dilations[axis]-1)/w.strides[axis] + 1
		out[rank+axis] = w.size[axis]
		strides[axis], strides[rank+axis] = n*w.strides[axis], n*w.dilations[axis]
		n *= size
	}
	return x.AsStrided(out, strides, 0)
}

// axes returns the axes of a window in the result of view.
func (w windows) axes() []int {
	out := allAxes(2 * len(w.size))
	return out[len(w.size):]
}

// ReduceWindow reduces the elements of each window.
func (f *function) ReduceWindow(
	x backends.Value, reduction backends.ReduceOpType, size, strides, baseDilations, dilations []int, paddings [][2]int,
) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeReduceWindow, x, func(x *mlxc.Array) *mlxc.Array {
		if x.NDim() == 0 {
			return x
		}
		window := size
		if len(size) == 0 {
			window = onesShape(x.NDim())
		}
		w := newWindows(window, strides, baseDilations, dilations, paddings)
		var fill *mlxc.Array
		reduce := (*mlxc.Array).Sum
		switch reduction {
		case backends.ReduceOpProduct:
			fill, reduce = mlxc.Ones(x.DType()), (*mlxc.Array).Prod
		case backends.ReduceOpMax:
			fill, reduce = lowest(x.DType()), (*mlxc.Array).Max
		case backends.ReduceOpMin:
			fill, reduce = highest(x.DType()), (*mlxc.Array).Min
		default:
			fill = mlxc.Zeros(x.DType())
		}
		return reduce(w.view(pad(x, fill, w.padding)), w.axes()...)
	}, func(s shapes.Shape) (shapes.Shape, error) {
		if reduction < backends.ReduceOpSum || reduction > backends.ReduceOpMin {
			return s, fmt.Errorf("the reduction is %v; it must be a sum, product, maximum or minimum", reduction)
		}
		return shapeinference.ReduceWindowOp(s, size, strides, baseDilations, dilations, paddings)
	})
}

// SelectAndScatterMax adds each element of source to the position of the maximum of its window.
func (f *function) SelectAndScatterMax(
	operand, source backends.Value, size, strides []int, paddings [][2]int,
) (backends.Value, error) {
	return f.selectAndScatter(backends.OpTypeSelectAndScatterMax, operand, source,
		newWindows(size, strides, nil, nil, paddings), paddings, lowest, (*mlxc.Array).ArgMax)
}

// SelectAndScatterMin adds each element of source to the position of the minimum of its window.
func (f *function) SelectAndScatterMin(
	operand, source backends.Value, size, strides []int, paddings [][2]int,
) (backends.Value, error) {
	return f.selectAndScatter(backends.OpTypeSelectAndScatterMin, operand, source,
		newWindows(size, strides, nil, nil, paddings), paddings, highest, (*mlxc.Array).ArgMin)
}

func (f *function) selectAndScatter(
	op backends.OpType, operand, source backends.Value, w windows, paddings [][2]int,
	fill func(mlxc.DType) *mlxc.Array, pick func(a *mlxc.Array, axis int) *mlxc.Array,
) (backends.Value, error) {
	return f.add1(op, []backends.Value{operand, source},
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			want, err := shapeinference.ReduceWindowOp(in[0], w.size, w.strides, nil, nil, paddings)
			if err == nil && !want.Equal(in[1]) {
				err = fmt.Errorf("the source has the shape %v; it must have the shape %v of the windows", in[1], want)
			}
			return in[0], func(in []*mlxc.Array) *mlxc.Array {
				if in[0].NDim() == 0 {
					return in[1]
				}
				return w.scatterSelected(pad(in[0], fill(in[0].DType()), w.padding), in[1], pick)
			}, err
		})
}

// scatterSelected adds the elements of source to zeros of x's shape, at the positions that pick selects in each window,
// and removes the padding.
func (w windows) scatterSelected(
	x, source *mlxc.Array, pick func(a *mlxc.Array, axis int) *mlxc.Array,
) *mlxc.Array {
	shape := x.Shape()
	rank := len(shape)
	elements := w.view(x).Flatten(rank, -1)
	positions := w.view(mlxc.Arange(mlxc.Int32, 0, float64(x.Size()), 1).Reshape(shape...)).Flatten(rank, -1)
	ids := positions.TakeAlongAxis(pick(elements, rank).ExpandDims(-1), rank).Flatten(0, -1)
	sums := mlxc.Zeros(x.DType(), x.Size()).AddAt(source.Flatten(0, -1), mlxc.IDs(ids)).Reshape(shape...)
	cut := make([]backends.PadAxis, rank)
	for i, p := range w.padding {
		cut[i] = backends.PadAxis{Start: -p.Start, End: -p.End}
	}
	return pad(sums, nil, cut)
}
