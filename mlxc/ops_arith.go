package mlxc

// #include "mlxg.h"
import "C"

// Element-wise arithmetic. Operands of different shapes are broadcast to a common
// shape, and of different dtypes promoted to a common dtype, by MLX's rules; if
// that cannot be done the result is invalid.

// Add returns a + b.
func (a *Array) Add(b *Array) *Array { return binary("add", C.mlxg_binary_fn(C.mlx_add), a, b) }

// Sub returns a − b.
func (a *Array) Sub(b *Array) *Array {
	return binary("subtract", C.mlxg_binary_fn(C.mlx_subtract), a, b)
}

// Mul returns a · b, element by element.
func (a *Array) Mul(b *Array) *Array {
	return binary("multiply", C.mlxg_binary_fn(C.mlx_multiply), a, b)
}

// Div returns a / b. Integers are divided as float32.
func (a *Array) Div(b *Array) *Array {
	return binary("divide", C.mlxg_binary_fn(C.mlx_divide), a, b)
}

// Pow returns a raised to b.
func (a *Array) Pow(b *Array) *Array {
	return binary("power", C.mlxg_binary_fn(C.mlx_power), a, b)
}

// Maximum returns the larger of a and b; NaN if either is.
func (a *Array) Maximum(b *Array) *Array {
	return binary("maximum", C.mlxg_binary_fn(C.mlx_maximum), a, b)
}

// Minimum returns the smaller of a and b; NaN if either is.
func (a *Array) Minimum(b *Array) *Array {
	return binary("minimum", C.mlxg_binary_fn(C.mlx_minimum), a, b)
}

// AddScalar returns a + s in a's dtype, if that is a floating-point one.
func (a *Array) AddScalar(s float64) *Array { return a.withScalar(s, (*Array).Add) }

// SubScalar returns a − s in a's dtype, if that is a floating-point one.
func (a *Array) SubScalar(s float64) *Array { return a.withScalar(s, (*Array).Sub) }

// MulScalar returns a · s in a's dtype, if that is a floating-point one.
func (a *Array) MulScalar(s float64) *Array { return a.withScalar(s, (*Array).Mul) }

// DivScalar returns a / s in a's dtype, if that is a floating-point one.
func (a *Array) DivScalar(s float64) *Array { return a.withScalar(s, (*Array).Div) }

// withScalar gives the scalar a's dtype if that can hold it, so that it does not
// promote a: float16 stays float16.
func (a *Array) withScalar(s float64, f func(a, b *Array) *Array) *Array {
	var b *Array
	switch d := a.DType(); d {
	case Float64:
		b = Scalar(s)
	case Float16, BFloat16:
		b = Scalar(float32(s)).AsType(d)
	default:
		b = Scalar(float32(s))
	}
	defer b.Free()
	return f(a, b)
}

// Neg returns −a.
func (a *Array) Neg() *Array { return unary("negative", C.mlxg_unary_fn(C.mlx_negative), a) }

// Abs returns the absolute value.
func (a *Array) Abs() *Array { return unary("abs", C.mlxg_unary_fn(C.mlx_abs), a) }

// Square returns a·a.
func (a *Array) Square() *Array { return unary("square", C.mlxg_unary_fn(C.mlx_square), a) }

// Sqrt returns the square root.
func (a *Array) Sqrt() *Array { return unary("sqrt", C.mlxg_unary_fn(C.mlx_sqrt), a) }

// Rsqrt returns the reciprocal square root.
func (a *Array) Rsqrt() *Array { return unary("rsqrt", C.mlxg_unary_fn(C.mlx_rsqrt), a) }

// Exp returns e raised to a.
func (a *Array) Exp() *Array { return unary("exp", C.mlxg_unary_fn(C.mlx_exp), a) }

// Log returns the natural logarithm.
func (a *Array) Log() *Array { return unary("log", C.mlxg_unary_fn(C.mlx_log), a) }

// Sin returns the sine of a, in radians.
func (a *Array) Sin() *Array { return unary("sin", C.mlxg_unary_fn(C.mlx_sin), a) }

// Cos returns the cosine of a, in radians.
func (a *Array) Cos() *Array { return unary("cos", C.mlxg_unary_fn(C.mlx_cos), a) }

// Tanh returns the hyperbolic tangent.
func (a *Array) Tanh() *Array { return unary("tanh", C.mlxg_unary_fn(C.mlx_tanh), a) }

// Sigmoid returns 1/(1+e⁻ᵃ).
func (a *Array) Sigmoid() *Array { return unary("sigmoid", C.mlxg_unary_fn(C.mlx_sigmoid), a) }

// StopGradient returns a; no gradient flows through it.
func (a *Array) StopGradient() *Array {
	return unary("stop_gradient", C.mlxg_unary_fn(C.mlx_stop_gradient), a)
}

// Equal returns a = b as booleans.
func (a *Array) Equal(b *Array) *Array {
	return binary("equal", C.mlxg_binary_fn(C.mlx_equal), a, b)
}

// Greater returns a > b as booleans.
func (a *Array) Greater(b *Array) *Array {
	return binary("greater", C.mlxg_binary_fn(C.mlx_greater), a, b)
}

// Less returns a < b as booleans.
func (a *Array) Less(b *Array) *Array {
	return binary("less", C.mlxg_binary_fn(C.mlx_less), a, b)
}

// Where returns a's elements where cond is true and b's elsewhere.
func Where(cond, a, b *Array) *Array {
	return ternary("where", C.mlxg_ternary_fn(C.mlx_where), cond, a, b)
}

// MatMul returns the matrix product over the last two axes; the others are
// broadcast. A vector counts as a row on the left and as a column on the right.
func (a *Array) MatMul(b *Array) *Array {
	return binary("matmul", C.mlxg_binary_fn(C.mlx_matmul), a, b)
}

// Sum adds up over the axes, or over all if none are given.
func (a *Array) Sum(axes ...int) *Array {
	return reduce("sum", C.mlxg_axes_fn(C.mlx_sum_axes), a, axes)
}

// Mean averages over the axes, or over all if none are given.
func (a *Array) Mean(axes ...int) *Array {
	return reduce("mean", C.mlxg_axes_fn(C.mlx_mean_axes), a, axes)
}

// Max gives the largest element over the axes, or over all if none are given.
func (a *Array) Max(axes ...int) *Array {
	return reduce("max", C.mlxg_axes_fn(C.mlx_max_axes), a, axes)
}

// Min gives the smallest element over the axes, or over all if none are given.
func (a *Array) Min(axes ...int) *Array {
	return reduce("min", C.mlxg_axes_fn(C.mlx_min_axes), a, axes)
}
