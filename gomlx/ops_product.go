package gomlx

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// DotGeneral multiplies and sums over the contracting axes. The result has the batch axes, the other axes of lhs, and
// the other axes of rhs.
func (f *function) DotGeneral(
	lhs backends.Value, lhsContracting, lhsBatch []int, rhs backends.Value, rhsContracting, rhsBatch []int,
	config backends.DotGeneralConfig,
) (backends.Value, error) {
	return f.add1(backends.OpTypeDotGeneral, []backends.Value{lhs, rhs},
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			l, err := newOperand(in[0], lhsContracting, lhsBatch)
			if err != nil {
				return in[0], nil, fmt.Errorf("lhs: %w", err)
			}
			r, err := newOperand(in[1], rhsContracting, rhsBatch)
			if err != nil {
				return in[0], nil, fmt.Errorf("rhs: %w", err)
			}
			if in[0].DType != in[1].DType || !slices.Equal(l.contracted, r.contracted) || !slices.Equal(l.batch, r.batch) {
				return in[0], nil, fmt.Errorf("the operands are %v and %v; they must have one dtype, and the same sizes along "+
					"contracting axes (%v and %v) and batch axes (%v and %v)", in[0], in[1], l.contracted, r.contracted, l.batch,
					r.batch)
			}
			out := shapes.Shape{DType: in[0].DType, Dimensions: slices.Concat(l.batch, l.free, r.free)}
			accumulator := out.DType
			if config.AccumulatorDType != dtypes.InvalidDType {
				accumulator = config.AccumulatorDType
				out.DType = accumulator
			}
			if config.OutputDType != dtypes.InvalidDType {
				out.DType = config.OutputDType
			}
			if accumulator == dtypes.Float32 && out.DType == in[0].DType {
				accumulator = out.DType // products of small dtypes are summed in float32 anyway
			}
			return out, func(in []*mlxc.Array) *mlxc.Array {
				d := mlxDType(accumulator)
				x := transpose(in[0].AsType(d), slices.Concat(l.batchAxes, l.freeAxes, l.contractedAxes))
				y := transpose(in[1].AsType(d), slices.Concat(r.batchAxes, r.contractedAxes, r.freeAxes))
				x = x.Reshape(slices.Concat(l.batch, []int{size(l.free), size(l.contracted)})...)
				y = y.Reshape(slices.Concat(r.batch, []int{size(r.contracted), size(r.free)})...)
				return matMul(x, y).Reshape(out.Dimensions...)
			}, nil
		})
}

// operand holds the axes of an operand of DotGeneral by their roles, and their sizes.
type operand struct {
	batchAxes, freeAxes, contractedAxes []int
	batch, free, contracted             []int
}

func newOperand(s shapes.Shape, contractedAxes, batchAxes []int) (operand, error) {
	o := operand{batchAxes: batchAxes, contractedAxes: contractedAxes}
	used := make([]bool, s.Rank())
	for _, axis := range slices.Concat(batchAxes, contractedAxes) {
		if axis < 0 || axis >= s.Rank() || used[axis] {
			return o, fmt.Errorf("axis %d is repeated or not an axis of %v", axis, s)
		}
		used[axis] = true
	}
	for axis, n := range s.Dimensions {
		if !used[axis] {
			o.freeAxes, o.free = append(o.freeAxes, axis), append(o.free, n)
		}
	}
	for _, axis := range batchAxes {
		o.batch = append(o.batch, s.Dimensions[axis])
	}
	for _, axis := range contractedAxes {
		o.contracted = append(o.contracted, s.Dimensions[axis])
	}
	return o, nil
}

func size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// matMul returns the product of the last two axes of x and y, which have the same batch axes. It uses the kernels of
// package ops for products without batch axes.
func matMul(x, y *mlxc.Array) *mlxc.Array {
	switch {
	case x.DType().IsInteger():
		return x.ExpandDims(-1).Mul(y.ExpandDims(-3)).Sum(-2)
	case y.NDim() == 2 && hasKernels(x.DType()) && x.Size() > 0 && y.Size() > 0:
		return ops.MatMul(x, y)
	}
	return x.MatMul(y)
}

// hasKernels reports whether the operations of package ops take the dtype.
func hasKernels(d mlxc.DType) bool {
	return d == mlxc.Float32 || d == mlxc.Float16 || d == mlxc.BFloat16
}

// ConvGeneral convolves along 1 to 3 spatial axes.
func (f *function) ConvGeneral(
	input, kernel backends.Value, axes backends.ConvolveAxesConfig, strides []int, paddings [][2]int,
	inputDilations, kernelDilations []int, channelGroups, batchGroups int,
) (backends.Value, error) {
	axes = axes.Clone()
	return f.add1(backends.OpTypeConvGeneral, []backends.Value{input, kernel},
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			if len(strides) == 0 {
				strides = onesShape(len(axes.InputSpatial))
			}
			// GoMLX's function for the shape takes nil, but no other empty lists.
			paddings, inputDilations = nonEmpty(paddings), nonEmpty(inputDilations)
			kernelDilations = nonEmpty(kernelDilations)
			channelGroups, batchGroups = max(channelGroups, 1), max(batchGroups, 1)
			out, err := shapeinference.ConvGeneralOp(in[0], in[1], axes, strides, paddings, inputDilations, kernelDilations,
				channelGroups, batchGroups)
			return out, func(in []*mlxc.Array) *mlxc.Array {
				// MLX has the channels last in the input and the kernel, and the kernel's output channels first.
				x := in[0].Transpose(slices.Concat([]int{axes.InputBatch}, axes.InputSpatial, []int{axes.InputChannels})...)
				w := in[1].Transpose(
					slices.Concat([]int{axes.KernelOutputChannels}, axes.KernelSpatial, []int{axes.KernelInputChannels})...)
				x = joinBatchGroups(x, batchGroups)
				c := convolution{strides, kernelDilations, inputDilations, paddings, channelGroups * batchGroups}
				y := c.run(x, w)
				order := make([]int, out.Rank())
				order[axes.OutputBatch], order[axes.OutputChannels] = 0, out.Rank()-1
				for i, axis := range axes.OutputSpatial {
					order[axis] = i + 1
				}
				return y.Transpose(order...)
			}, err
		})
}

// convolution holds the geometry of a convolution. The lists have an entry per spatial axis; dilations and paddings may
// be nil.
type convolution struct {
	strides, dilations, inputDilations []int
	paddings                           [][2]int
	groups                             int
}

// run convolves an input of shape (batch, spatial axes, channels) with a kernel of shape (output channels, spatial axes,
// channels).
func (c convolution) run(x, w *mlxc.Array) *mlxc.Array {
	negative := slices.ContainsFunc(c.paddings, func(p [2]int) bool { return min(p[0], p[1]) < 0 })
	if hasKernels(x.DType()) && !negative {
		config := mlxc.ConvGeneralConfig{
			Stride: c.strides, Dilation: c.dilations, InputDilation: c.inputDilations, Groups: c.groups,
		}
		for _, p := range c.paddings {
			config.PaddingLow, config.PaddingHigh = append(config.PaddingLow, p[0]), append(config.PaddingHigh, p[1])
		}
		return mlxc.ConvGeneral(x, w, config)
	}
	spatial := x.Shape()[1 : x.NDim()-1]
	padding := newWindows(spatial, nil, c.inputDilations, nil, c.paddings).padding
	x = pad(x, mlxc.Zeros(x.DType()), append([]backends.PadAxis{{}}, padding...))
	if hasKernels(x.DType()) {
		return mlxc.ConvGeneral(x, w, mlxc.ConvGeneralConfig{Stride: c.strides, Dilation: c.dilations, Groups: c.groups})
	}
	// MLX convolves no other dtypes. The product of the windows and the kernel is the same.
	last := x.NDim() - 1
	inputs, kernels := x.Split(c.groups, last), w.Split(c.groups, 0)
	products := make([]*mlxc.Array, c.groups)
	for g := range products {
		products[g] = c.multiply(inputs[g], kernels[g])
	}
	return mlxc.Concatenate(last, products...)
}

// multiply convolves without groups and padding, by a matrix product.
func (c convolution) multiply(x, w *mlxc.Array) *mlxc.Array {
	last := x.NDim() - 1
	around := func(list []int) []int { return slices.Concat([]int{1}, list, []int{1}) }
	g := windows{size: around(w.Shape()[1:last]), strides: around(c.strides), dilations: onesShape(last + 1)}
	if c.dilations != nil {
		g.dilations = around(c.dilations)
	}
	x = g.view(x) // batch, positions, channels, 1, window, 1
	out := x.Shape()[:last]
	channels := last
	order := slices.Delete(allAxes(x.NDim()), channels, channels+1)
	x = x.Transpose(append(order, channels)...).Reshape(size(out), -1)
	return matMul(x, w.Reshape(w.Dim(0), -1).Transpose()).Reshape(append(out, w.Dim(0))...)
}

// nonEmpty returns nil for an empty list.
func nonEmpty[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// joinBatchGroups turns groups of the batch, which is axis 0, into groups of channels, the last axis.
func joinBatchGroups(x *mlxc.Array, groups int) *mlxc.Array {
	if groups == 1 {
		return x
	}
	shape := x.Shape()
	x = x.Unflatten(0, groups, shape[0]/groups).MoveAxis(0, -2)
	return x.Flatten(-2, -1)
}
