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

// FloorDivide returns ⌊a / b⌋, of integers too. An integer divided by 0 gives 0.
func (a *Array) FloorDivide(b *Array) *Array {
	q := binary("floor_divide", C.mlxg_binary_fn(C.mlx_floor_divide), a, b)
	if q.DType() != Bool && !q.DType().IsInteger() {
		return q
	}
	q.Free()
	WithScope(func() {
		special, divisor := safeDivisor(b)
		zero := Zeros(Int8)
		// MLX rounds towards zero.
		q = binary("floor_divide", C.mlxg_binary_fn(C.mlx_floor_divide), a, divisor)
		above := a.Less(zero).NotEqual(divisor.Less(zero)).LogicalAnd(q.Mul(divisor).NotEqual(a))
		q = Where(special, a.Mul(b), q.Sub(above)).Keep()
	})
	return q
}

// Remainder returns a − b·⌊a / b⌋, which has the sign of b. That of an integer by 0
// is 0.
func (a *Array) Remainder(b *Array) *Array {
	r := binary("remainder", C.mlxg_binary_fn(C.mlx_remainder), a, b)
	if r.DType() != Bool && !r.DType().IsInteger() {
		return r
	}
	r.Free()
	WithScope(func() {
		_, divisor := safeDivisor(b)
		r = binary("remainder", C.mlxg_binary_fn(C.mlx_remainder), a, divisor).Keep()
	})
	return r
}

// safeDivisor finds the integers that must not divide and puts 1 in their place: on a
// CPU a division by 0 ends the process, and so does that of the least integer by −1.
// a·b is what stands for a / b there.
func safeDivisor(b *Array) (special, divisor *Array) {
	special = b.Equal(Zeros(b.DType()))
	if b.DType() >= Int8 && b.DType() <= Int64 {
		special = special.LogicalOr(b.Equal(Ones(b.DType()).Neg()))
	}
	return special, Where(special, Ones(b.DType()), b)
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

// Clip returns the elements limited to low … high, in a's dtype, if that is a
// floating-point one. NaN stays NaN.
func (a *Array) Clip(low, high float64) *Array {
	raised := a.withScalar(low, (*Array).Maximum)
	defer raised.Free()
	return raised.withScalar(high, (*Array).Minimum)
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

// Expm1 returns eᵃ − 1, exact also where a is near 0.
func (a *Array) Expm1() *Array { return unary("expm1", C.mlxg_unary_fn(C.mlx_expm1), a) }

// Log1p returns ln(1 + a), exact also where a is near 0.
func (a *Array) Log1p() *Array { return unary("log1p", C.mlxg_unary_fn(C.mlx_log1p), a) }

// Erf returns the error function, 2/√π · ∫₀ᵃ e^(−t²) dt.
func (a *Array) Erf() *Array { return unary("erf", C.mlxg_unary_fn(C.mlx_erf), a) }

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

// MatMul returns the matrix product over the last two axes; the others are
// broadcast. A vector counts as a row on the left and as a column on the right.
func (a *Array) MatMul(b *Array) *Array {
	return binary("matmul", C.mlxg_binary_fn(C.mlx_matmul), a, b)
}
