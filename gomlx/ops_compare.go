package gomlx

import (
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func (f *function) Equal(x, y backends.Value) (backends.Value, error) {
	return f.compare(backends.OpTypeEqual, x, y, (*mlxc.Array).Equal)
}

func (f *function) NotEqual(x, y backends.Value) (backends.Value, error) {
	return f.compare(backends.OpTypeNotEqual, x, y, (*mlxc.Array).NotEqual)
}

func (f *function) GreaterThan(x, y backends.Value) (backends.Value, error) {
	return f.compare(backends.OpTypeGreaterThan, x, y, (*mlxc.Array).Greater)
}

func (f *function) GreaterOrEqual(x, y backends.Value) (backends.Value, error) {
	return f.compare(backends.OpTypeGreaterOrEqual, x, y, (*mlxc.Array).GreaterEqual)
}

func (f *function) LessThan(x, y backends.Value) (backends.Value, error) {
	return f.compare(backends.OpTypeLessThan, x, y, (*mlxc.Array).Less)
}

func (f *function) LessOrEqual(x, y backends.Value) (backends.Value, error) {
	return f.compare(backends.OpTypeLessOrEqual, x, y, (*mlxc.Array).LessEqual)
}

// The comparisons in total order compare integers that ascend as the numbers do: -NaN, -Inf, …, -0, +0, …, +Inf, +NaN.

func (f *function) EqualTotalOrder(x, y backends.Value) (backends.Value, error) {
	return f.compareTotal(backends.OpTypeEqualTotalOrder, x, y, (*mlxc.Array).Equal)
}

func (f *function) NotEqualTotalOrder(x, y backends.Value) (backends.Value, error) {
	return f.compareTotal(backends.OpTypeNotEqualTotalOrder, x, y, (*mlxc.Array).NotEqual)
}

func (f *function) GreaterThanTotalOrder(x, y backends.Value) (backends.Value, error) {
	return f.compareTotal(backends.OpTypeGreaterThanTotalOrder, x, y, (*mlxc.Array).Greater)
}

func (f *function) GreaterOrEqualTotalOrder(x, y backends.Value) (backends.Value, error) {
	return f.compareTotal(backends.OpTypeGreaterOrEqualTotalOrder, x, y, (*mlxc.Array).GreaterEqual)
}

func (f *function) LessThanTotalOrder(x, y backends.Value) (backends.Value, error) {
	return f.compareTotal(backends.OpTypeLessThanTotalOrder, x, y, (*mlxc.Array).Less)
}

func (f *function) LessOrEqualTotalOrder(x, y backends.Value) (backends.Value, error) {
	return f.compareTotal(backends.OpTypeLessOrEqualTotalOrder, x, y, (*mlxc.Array).LessEqual)
}

func (f *function) compareTotal(op backends.OpType, x, y backends.Value, run binaryFunc) (backends.Value, error) {
	return f.binaryTo(op, x, y, func(x, y *mlxc.Array) *mlxc.Array { return run(totalOrder(x), totalOrder(y)) },
		func(_ backends.OpType, x, y shapes.Shape) (shapes.Shape, error) {
			if x.DType.IsComplex() {
				return x, notImplemented("complex numbers have no total order")
			}
			// GoMLX's list of comparisons lacks OpTypeNotEqualTotalOrder.
			return shapeinference.ComparisonOp(backends.OpTypeEqualTotalOrder, x, y)
		})
}

// totalOrder maps floating-point numbers to signed integers in their total order: of negative numbers, it inverts the
// bits other than the sign.
func totalOrder(x *mlxc.Array) *mlxc.Array {
	signed, ok := map[mlxc.DType]mlxc.DType{
		mlxc.Float16: mlxc.Int16, mlxc.BFloat16: mlxc.Int16, mlxc.Float32: mlxc.Int32, mlxc.Float64: mlxc.Int64,
	}[x.DType()]
	if !ok {
		return x
	}
	bits := x.View(signed)
	signs := bits.RightShift(mlxc.Full(signed, mlxc.Scalar(int32(8*signed.Size()-1))))
	magnitude := mlxc.Full(signed, mlxc.Scalar(int64(1)<<(8*signed.Size()-1)-1))
	return bits.BitwiseXor(signs.BitwiseAnd(magnitude))
}
