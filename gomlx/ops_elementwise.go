package gomlx

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

type (
	unaryFunc  = func(x *mlxc.Array) *mlxc.Array
	binaryFunc = func(x, y *mlxc.Array) *mlxc.Array
)

func (f *function) unary(op backends.OpType, x backends.Value, run unaryFunc) (backends.Value, error) {
	return f.unaryTo(op, x, run, func(s shapes.Shape) (shapes.Shape, error) { return shapeinference.UnaryOp(op, s) })
}

// unaryTo is unary with a function that checks the operand's shape and returns the result's.
func (f *function) unaryTo(
	op backends.OpType, x backends.Value, run unaryFunc, infer func(s shapes.Shape) (shapes.Shape, error),
) (backends.Value, error) {
	return f.add1(op, []backends.Value{x},
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			out, err := infer(in[0])
			return out, func(in []*mlxc.Array) *mlxc.Array { return run(in[0]) }, err
		})
}

func (f *function) binary(op backends.OpType, x, y backends.Value, run binaryFunc) (backends.Value, error) {
	return f.binaryTo(op, x, y, run, shapeinference.BinaryOp)
}

func (f *function) compare(op backends.OpType, x, y backends.Value, run binaryFunc) (backends.Value, error) {
	return f.binaryTo(op, x, y, run, shapeinference.ComparisonOp)
}

func (f *function) binaryTo(
	op backends.OpType, x, y backends.Value, run binaryFunc,
	infer func(op backends.OpType, x, y shapes.Shape) (shapes.Shape, error),
) (backends.Value, error) {
	return f.add1(op, []backends.Value{x, y},
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			out, err := infer(op, in[0], in[1])
			return out, func(in []*mlxc.Array) *mlxc.Array { return run(in[0], in[1]) }, err
		})
}

func (f *function) Abs(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeAbs, x, (*mlxc.Array).Abs)
}

func (f *function) Ceil(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeCeil, x, (*mlxc.Array).Ceil)
}

func (f *function) Conj(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeConj, x, (*mlxc.Array).Conjugate)
}

func (f *function) Cos(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeCos, x, (*mlxc.Array).Cos)
}

func (f *function) Erf(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeErf, x, (*mlxc.Array).Erf)
}

func (f *function) Exp(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeExp, x, exp)
}

// exp computes float64 with Expm1: MLX's Exp has the precision of float32.
func exp(x *mlxc.Array) *mlxc.Array {
	if x.DType() != mlxc.Float64 {
		return x.Exp()
	}
	y := x.Abs().Expm1().AddScalar(1)
	return mlxc.Where(x.LessScalar(0), y.Reciprocal(), y)
}

func (f *function) Expm1(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeExpm1, x, (*mlxc.Array).Expm1)
}

func (f *function) Floor(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeFloor, x, (*mlxc.Array).Floor)
}

func (f *function) Log(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeLog, x, (*mlxc.Array).Log)
}

func (f *function) Log1p(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeLog1p, x, (*mlxc.Array).Log1p)
}

func (f *function) LogicalNot(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeLogicalNot, x, (*mlxc.Array).LogicalNot)
}

func (f *function) Logistic(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeLogistic, x, (*mlxc.Array).Sigmoid)
}

func (f *function) Neg(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeNeg, x, (*mlxc.Array).Neg)
}

func (f *function) Round(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeRound, x, (*mlxc.Array).Round)
}

func (f *function) Rsqrt(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeRsqrt, x, (*mlxc.Array).Rsqrt)
}

// Sign returns x where MLX's Sign differs: at -0, and at NaN, where MLX returns 0.
func (f *function) Sign(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeSign, x, func(x *mlxc.Array) *mlxc.Array {
		if !x.DType().IsFloating() {
			return x.Sign()
		}
		return mlxc.Where(x.Abs().GreaterScalar(0), x.Sign(), x)
	})
}

func (f *function) Sin(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeSin, x, (*mlxc.Array).Sin)
}

func (f *function) Sqrt(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeSqrt, x, (*mlxc.Array).Sqrt)
}

func (f *function) Tanh(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeTanh, x, (*mlxc.Array).Tanh)
}

func (f *function) Identity(x backends.Value) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeIdentity, x, func(x *mlxc.Array) *mlxc.Array { return x }, sameShape)
}

func sameShape(s shapes.Shape) (shapes.Shape, error) { return s, nil }

func (f *function) ConvertDType(x backends.Value, dtype dtypes.DType) (backends.Value, error) {
	// The step converts its result to the dtype of the shape.
	return f.unaryTo(backends.OpTypeConvertDType, x, func(x *mlxc.Array) *mlxc.Array { return x },
		func(s shapes.Shape) (shapes.Shape, error) { return withDType(s, dtype), nil })
}

func withDType(s shapes.Shape, d dtypes.DType) shapes.Shape {
	return shapes.Shape{DType: d, Dimensions: s.Dimensions}
}

func (f *function) IsFinite(x backends.Value) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeIsFinite, x, (*mlxc.Array).IsFinite, inexactToBool)
}

func (f *function) IsNaN(x backends.Value) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeIsNaN, x, (*mlxc.Array).IsNaN, inexactToBool)
}

func inexactToBool(s shapes.Shape) (shapes.Shape, error) {
	if !s.DType.IsFloat() && !s.DType.IsComplex() {
		return s, fmt.Errorf("the dtype is %v; it must be floating-point or complex", s.DType)
	}
	return withDType(s, dtypes.Bool), nil
}

// Real returns the real part of a complex number, and other numbers unchanged.
func (f *function) Real(x backends.Value) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeReal, x, func(x *mlxc.Array) *mlxc.Array {
		if x.DType() != mlxc.Complex64 {
			return x
		}
		return x.Real()
	}, realShape)
}

// Imag returns the imaginary part of a complex number, and 0 for other numbers.
func (f *function) Imag(x backends.Value) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeImag, x, func(x *mlxc.Array) *mlxc.Array {
		if x.DType() != mlxc.Complex64 {
			return mlxc.ZerosLike(x)
		}
		return x.Imag()
	}, realShape)
}

func realShape(s shapes.Shape) (shapes.Shape, error) {
	if s.DType.IsComplex() {
		return withDType(s, s.DType.RealDType()), nil
	}
	return s, nil
}

// Complex joins a real and an imaginary part.
func (f *function) Complex(re, im backends.Value) (backends.Value, error) {
	return f.binaryTo(backends.OpTypeComplex, re, im, func(re, im *mlxc.Array) *mlxc.Array {
		parts := mlxc.BroadcastArrays(re, im)
		pairs := mlxc.Stack(parts[0].NDim(), parts...)
		return pairs.View(mlxc.Complex64).Reshape(parts[0].Shape()...)
	}, func(_ backends.OpType, re, im shapes.Shape) (shapes.Shape, error) {
		if re.DType != dtypes.Float32 || im.DType != dtypes.Float32 {
			return re, fmt.Errorf("the dtypes are %v and %v; MLX has complex numbers of float32 only: %w", re.DType, im.DType,
				backends.ErrNotImplemented)
		}
		out, err := shapeinference.BinaryOp(backends.OpTypeAdd, re, im)
		return withDType(out, dtypes.Complex64), err
	})
}

func (f *function) Add(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeAdd, x, y, (*mlxc.Array).Add)
}

func (f *function) Atan2(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeAtan2, x, y, (*mlxc.Array).Arctan2)
}

// Div rounds quotients of integers toward zero.
func (f *function) Div(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeDiv, x, y, func(x, y *mlxc.Array) *mlxc.Array {
		if !x.DType().IsInteger() {
			return x.Div(y)
		}
		return x.FloorDivide(y).Add(roundedDown(x, y).AsType(x.DType()))
	})
}

// Rem returns a remainder with the sign of x.
func (f *function) Rem(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeRem, x, y, func(x, y *mlxc.Array) *mlxc.Array {
		if x.DType().IsInteger() {
			return x.Remainder(y).Sub(mlxc.Where(roundedDown(x, y), y, mlxc.ZerosLike(y)))
		}
		r := x.Abs().Remainder(y.Abs())
		return mlxc.Where(x.LessScalar(0), r.Neg(), r)
	})
}

// roundedDown reports where the floor of the quotient of two integers is below their quotient rounded toward zero.
func roundedDown(x, y *mlxc.Array) *mlxc.Array {
	return x.LessScalar(0).NotEqual(y.LessScalar(0)).LogicalAnd(x.Remainder(y).NotEqualScalar(0))
}

func (f *function) Max(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeMax, x, y, (*mlxc.Array).Maximum)
}

func (f *function) Min(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeMin, x, y, (*mlxc.Array).Minimum)
}

func (f *function) Mul(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeMul, x, y, (*mlxc.Array).Mul)
}

func (f *function) Pow(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypePow, x, y, (*mlxc.Array).Pow)
}

func (f *function) Sub(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeSub, x, y, (*mlxc.Array).Sub)
}

func (f *function) LogicalAnd(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeLogicalAnd, x, y, (*mlxc.Array).LogicalAnd)
}

func (f *function) LogicalOr(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeLogicalOr, x, y, (*mlxc.Array).LogicalOr)
}

func (f *function) LogicalXor(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeLogicalXor, x, y, (*mlxc.Array).LogicalXor)
}

// Clamp limits x to low … high.
func (f *function) Clamp(low, x, high backends.Value) (backends.Value, error) {
	return f.add1(backends.OpTypeClamp, []backends.Value{low, x, high},
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			for _, limit := range []shapes.Shape{in[0], in[2]} {
				if limit.DType != in[1].DType || !limit.IsScalar() && !limit.Equal(in[1]) {
					return in[1], nil, fmt.Errorf("the limits have the shapes %v and %v; they must be scalars of x's dtype, or "+
						"have x's shape %v", in[0], in[2], in[1])
				}
			}
			return in[1], func(in []*mlxc.Array) *mlxc.Array { return in[1].Maximum(in[0]).Minimum(in[2]) }, nil
		})
}

// Where selects elements of onTrue or onFalse.
func (f *function) Where(condition, onTrue, onFalse backends.Value) (backends.Value, error) {
	return f.add1(backends.OpTypeWhere, []backends.Value{condition, onTrue, onFalse},
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			out, err := shapeinference.WhereOp(in[0], in[1], in[2])
			return out, func(in []*mlxc.Array) *mlxc.Array { return mlxc.Where(in[0], in[1], in[2]) }, err
		})
}
