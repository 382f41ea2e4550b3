package gomlx

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func (f *function) Reshape(x backends.Value, dims ...int) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeReshape, x, func(x *mlxc.Array) *mlxc.Array { return x.Reshape(dims...) },
		func(s shapes.Shape) (shapes.Shape, error) { return shapeinference.ReshapeOp(s, dims) })
}

func (f *function) Transpose(x backends.Value, permutation ...int) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeTranspose, x, func(x *mlxc.Array) *mlxc.Array { return transpose(x, permutation) },
		func(s shapes.Shape) (shapes.Shape, error) { return shapeinference.TransposeOp(s, permutation) })
}

// transpose is Transpose for a list of all axes, which may be empty.
func transpose(x *mlxc.Array, axes []int) *mlxc.Array {
	if len(axes) == 0 {
		return x
	}
	return x.Transpose(axes...)
}

func (f *function) BroadcastInDim(x backends.Value, shape shapes.Shape, axes []int) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeBroadcastInDim, x, func(x *mlxc.Array) *mlxc.Array {
		ones := onesShape(shape.Rank())
		for i, axis := range axes {
			ones[axis] = x.Dim(i)
		}
		return x.Reshape(ones...).BroadcastTo(shape.Dimensions...)
	}, func(s shapes.Shape) (shapes.Shape, error) {
		return withDType(shape, s.DType), shapeinference.BroadcastInDimOp(s, shape, axes)
	})
}

// onesShape returns a shape whose axes have size 1.
func onesShape(rank int) []int {
	out := make([]int, rank)
	for i := range out {
		out[i] = 1
	}
	return out
}

func (f *function) Iota(shape shapes.Shape, axis int) (backends.Value, error) {
	return f.add1(backends.OpTypeIota, nil, func([]shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
		if axis < 0 || axis >= shape.Rank() {
			return shape, nil, fmt.Errorf("the axis is %d; it must be an axis of %v", axis, shape)
		}
		return shape, func([]*mlxc.Array) *mlxc.Array {
			ones := onesShape(shape.Rank())
			n := shape.Dimensions[axis]
			ones[axis] = n
			// Small floating-point dtypes cannot count to n.
			return mlxc.Arange(mlxc.Int32, 0, float64(n), 1).Reshape(ones...).BroadcastTo(shape.Dimensions...)
		}, nil
	})
}

func (f *function) Concatenate(axis int, operands ...backends.Value) (backends.Value, error) {
	return f.add1(backends.OpTypeConcatenate, operands,
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			out, err := shapeinference.ConcatenateOp(in, axis)
			return out, func(in []*mlxc.Array) *mlxc.Array { return mlxc.Concatenate(axis, in...) }, err
		})
}

func (f *function) Slice(x backends.Value, starts, limits, strides []int) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeSlice, x,
		func(x *mlxc.Array) *mlxc.Array { return x.Slice(starts, limits, strides) },
		func(s shapes.Shape) (shapes.Shape, error) {
			if len(strides) == 0 {
				return shapeinference.SliceOp(s, starts, limits, onesShape(s.Rank()))
			}
			return shapeinference.SliceOp(s, starts, limits, strides)
		})
}

func (f *function) Reverse(x backends.Value, axes ...int) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeReverse, x, func(x *mlxc.Array) *mlxc.Array {
		if len(axes) == 0 { // Flip would reverse all axes
			return x
		}
		return x.Flip(axes...)
	}, func(s shapes.Shape) (shapes.Shape, error) {
		for i, axis := range axes {
			if axis < 0 || axis >= s.Rank() || slices.Contains(axes[:i], axis) {
				return s, fmt.Errorf("the axes are %v; they must be distinct axes of %v", axes, s)
			}
		}
		return s, nil
	})
}

func (f *function) Pad(x, fill backends.Value, axes ...backends.PadAxis) (backends.Value, error) {
	return f.add1(backends.OpTypePad, []backends.Value{x, fill},
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			if !in[1].IsScalar() || in[0].DType != in[1].DType {
				return in[0], nil, fmt.Errorf("the fill value has the shape %v; it must be a scalar of %v", in[1], in[0].DType)
			}
			out, err := shapeinference.PadOp(in[0], axes...)
			return out, func(in []*mlxc.Array) *mlxc.Array { return pad(in[0], in[1], axes) }, err
		})
}

// pad adds elements between the elements of the axes, and then adds elements at their ends, or removes them where the
// padding is negative.
func pad(x, fill *mlxc.Array, axes []backends.PadAxis) *mlxc.Array {
	rank := x.NDim()
	start, stop, strides := make([]int, rank), x.Shape(), onesShape(rank)
	shape := x.Shape()
	var ends []mlxc.Padding
	spread := false
	for i, p := range axes {
		if p.Interior > 0 && shape[i] > 1 {
			spread = true
			strides[i] += p.Interior
			shape[i] = (shape[i]-1)*strides[i] + 1
		}
		stop[i] = shape[i]
		if before, after := max(p.Start, 0), max(p.End, 0); before+after > 0 {
			ends = append(ends, mlxc.Padding{Axis: i, Before: before, After: after})
		}
	}
	if spread {
		x = mlxc.Full(x.DType(), fill, shape...).SliceUpdate(x, start, stop, strides)
	}
	if len(ends) > 0 {
		x = x.Pad(fill, ends...)
	}
	cut := false
	stop = x.Shape()
	for i, p := range axes {
		start[i], stop[i] = max(-p.Start, 0), stop[i]-max(-p.End, 0)
		cut = cut || p.Start < 0 || p.End < 0
	}
	if cut {
		x = x.Slice(start, stop, nil)
	}
	return x
}
