package gomlx

import (
	"math"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// reduce adds a reduction over the axes, or all axes if none are given. run may assume that there are axes.
func (f *function) reduce(
	op backends.OpType, x backends.Value, axes []int, run func(x *mlxc.Array, axes ...int) *mlxc.Array,
) (backends.Value, error) {
	return f.add1(op, []backends.Value{x},
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			axes := slices.Clone(axes)
			if len(axes) == 0 {
				axes = allAxes(in[0].Rank())
			}
			out, err := shapeinference.ReduceOp(in[0], axes)
			return withDType(out, in[0].DType), func(in []*mlxc.Array) *mlxc.Array {
				if len(axes) == 0 {
					return in[0]
				}
				return run(in[0], axes...)
			}, err
		})
}

func allAxes(rank int) []int {
	out := make([]int, rank)
	for i := range out {
		out[i] = i
	}
	return out
}

func (f *function) ReduceSum(x backends.Value, axes ...int) (backends.Value, error) {
	return f.reduce(backends.OpTypeReduceSum, x, axes, (*mlxc.Array).Sum)
}

func (f *function) ReduceProduct(x backends.Value, axes ...int) (backends.Value, error) {
	return f.reduce(backends.OpTypeReduceProduct, x, axes, (*mlxc.Array).Prod)
}

func (f *function) ReduceMax(x backends.Value, axes ...int) (backends.Value, error) {
	return f.reduce(backends.OpTypeReduceMax, x, axes, func(x *mlxc.Array, axes ...int) *mlxc.Array {
		return orIdentity(x, axes, lowest(x.DType()), (*mlxc.Array).Max)
	})
}

func (f *function) ReduceMin(x backends.Value, axes ...int) (backends.Value, error) {
	return f.reduce(backends.OpTypeReduceMin, x, axes, func(x *mlxc.Array, axes ...int) *mlxc.Array {
		return orIdentity(x, axes, highest(x.DType()), (*mlxc.Array).Min)
	})
}

// orIdentity is run, or the identity of the reduction if x has no elements, which is an error of MLX.
func orIdentity(
	x *mlxc.Array, axes []int, identity *mlxc.Array, run func(x *mlxc.Array, axes ...int) *mlxc.Array,
) *mlxc.Array {
	if x.Size() > 0 {
		return run(x, axes...)
	}
	var kept []int
	for i, n := range x.Shape() {
		if !slices.Contains(axes, i) {
			kept = append(kept, n)
		}
	}
	return mlxc.Full(x.DType(), identity, kept...)
}

// lowest returns the lowest number of the dtype, -Inf if it has one.
func lowest(d mlxc.DType) *mlxc.Array {
	switch {
	case d.IsFloating():
		return mlxc.Full(d, mlxc.Scalar(float32(math.Inf(-1))))
	case d == signedDType(d) && d.IsInteger():
		return mlxc.Full(d, mlxc.Scalar(int64(math.MinInt64)>>(64-8*d.Size())))
	}
	return mlxc.Zeros(d)
}

// highest returns the highest number of the dtype, +Inf if it has one.
func highest(d mlxc.DType) *mlxc.Array {
	switch {
	case d.IsFloating():
		return mlxc.Full(d, mlxc.Scalar(float32(math.Inf(1))))
	case d.IsInteger():
		return lowest(d).BitwiseInvert()
	}
	return mlxc.Ones(d)
}

func (f *function) ReduceLogicalAnd(x backends.Value, axes ...int) (backends.Value, error) {
	return f.reduce(backends.OpTypeReduceLogicalAnd, x, axes, (*mlxc.Array).All)
}

func (f *function) ReduceLogicalOr(x backends.Value, axes ...int) (backends.Value, error) {
	return f.reduce(backends.OpTypeReduceLogicalOr, x, axes, (*mlxc.Array).Any)
}

func (f *function) ReduceLogicalXor(x backends.Value, axes ...int) (backends.Value, error) {
	return f.reduce(backends.OpTypeReduceLogicalXor, x, axes, func(x *mlxc.Array, axes ...int) *mlxc.Array {
		return x.Sum(axes...).RemainderScalar(2)
	})
}

func (f *function) ReduceBitwiseAnd(x backends.Value, axes ...int) (backends.Value, error) {
	return f.reduce(backends.OpTypeReduceBitwiseAnd, x, axes, func(x *mlxc.Array, axes ...int) *mlxc.Array {
		return fold(x, axes, mlxc.Zeros(x.DType()).BitwiseInvert(), (*mlxc.Array).BitwiseAnd)
	})
}

func (f *function) ReduceBitwiseOr(x backends.Value, axes ...int) (backends.Value, error) {
	return f.reduce(backends.OpTypeReduceBitwiseOr, x, axes, func(x *mlxc.Array, axes ...int) *mlxc.Array {
		return fold(x, axes, mlxc.Zeros(x.DType()), (*mlxc.Array).BitwiseOr)
	})
}

func (f *function) ReduceBitwiseXor(x backends.Value, axes ...int) (backends.Value, error) {
	return f.reduce(backends.OpTypeReduceBitwiseXor, x, axes, func(x *mlxc.Array, axes ...int) *mlxc.Array {
		return fold(x, axes, mlxc.Zeros(x.DType()), (*mlxc.Array).BitwiseXor)
	})
}

// fold reduces the axes with an associative and commutative operation that MLX cannot reduce with: it combines the
// halves of the elements until one is left.
func fold(x *mlxc.Array, axes []int, identity *mlxc.Array, combine binaryFunc) *mlxc.Array {
	var kept, order []int
	for i, n := range x.Shape() {
		if !slices.Contains(axes, i) {
			kept, order = append(kept, n), append(order, i)
		}
	}
	last := len(kept)
	n := 1
	for _, axis := range axes {
		n *= x.Dim(axis)
	}
	x = transpose(x, append(order, axes...)).Reshape(append(slices.Clone(kept), n)...)
	if n == 0 {
		return mlxc.Full(x.DType(), identity, kept...)
	}
	for n > 1 {
		half := n / 2
		parts := x.SplitAt(last, half, 2*half)
		x = combine(parts[0], parts[1])
		if n%2 == 1 {
			x = mlxc.Concatenate(last, x, parts[2])
		}
		n -= half
	}
	return x.Reshape(kept...)
}

// ArgMinMax returns the position of the minimum or the maximum along the axis, or of the first NaN.
func (f *function) ArgMinMax(x backends.Value, axis int, dtype dtypes.DType, isMin bool) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeArgMinMax, x, func(x *mlxc.Array) *mlxc.Array {
		if x.DType() == mlxc.Bool {
			x = x.AsType(mlxc.Uint8)
		}
		best := x.ArgMax
		if isMin {
			best = x.ArgMin
		}
		if !x.DType().IsFloating() {
			return best(axis)
		}
		nan := x.IsNaN()
		return mlxc.Where(nan.Any(axis), nan.ArgMax(axis), best(axis))
	}, func(s shapes.Shape) (shapes.Shape, error) {
		if s.DType == dtypes.Bool { // GoMLX's function for the shape takes numbers only
			s = withDType(s, dtypes.Uint8)
		}
		return shapeinference.ArgMinMaxOp(s, axis, dtype)
	})
}
