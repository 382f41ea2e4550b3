package mlxc

import "errors"

// Element-wise arithmetic. Operands are broadcast to a common shape and promoted to a common dtype by MLX's rules. If
// that is impossible, the result is invalid.

// Add returns a + b, broadcast and promoted.
func (a *Array) Add(b *Array) *Array { return mlxAdd(a, b) }

// Sub returns a − b, broadcast and promoted.
func (a *Array) Sub(b *Array) *Array {
	return mlxSubtract(a, b)
}

// Mul returns a · b element by element, broadcast and promoted.
func (a *Array) Mul(b *Array) *Array {
	return mlxMultiply(a, b)
}

// Div returns a / b, broadcast and promoted. Integers and booleans are divided as float32.
func (a *Array) Div(b *Array) *Array {
	return mlxDivide(a, b)
}

// FloorDivide returns ⌊a / b⌋, also for integers. An integer divided by 0 gives 0. Complex operands are an error.
func (a *Array) FloorDivide(b *Array) *Array {
	q := mlxFloorDivide(a, b)
	switch {
	case q.DType() == Complex64: // MLX 0.32.4 returns a / b
		q.Free()
		return invalid(opError("floor_divide", errComplexFloor, a, b))
	case !q.DType().exact():
		return q
	}
	q.Free()
	WithScope(func() {
		special, divisor := safeDivisor(b)
		zero := Zeros(Int8)
		// MLX before 0.32.3 rounds the quotient toward zero (fault floor-divide-negative). Its remainder then has the
		// sign of a: subtract 1 where that is not the sign of the divisor.
		q = mlxFloorDivide(a, divisor)
		r := a.Sub(q.Mul(divisor))
		above := r.Less(zero).NotEqual(divisor.Less(zero)).LogicalAnd(r.NotEqual(zero))
		q = Where(special, a.Mul(b), q.Sub(above)).Keep()
	})
	return q
}

// Remainder returns a − b·⌊a / b⌋, which has the sign of b. The remainder of an integer by 0 is 0.
func (a *Array) Remainder(b *Array) *Array {
	r := mlxRemainder(a, b)
	if !r.DType().exact() {
		return r
	}
	r.Free()
	WithScope(func() {
		_, divisor := safeDivisor(b)
		r = mlxRemainder(a, divisor).Keep()
	})
	return r
}

// DivMod returns a.FloorDivide(b) and a.Remainder(b). Complex operands are an error.
func (a *Array) DivMod(b *Array) (quotient, remainder *Array) {
	quotient = a.FloorDivide(b)
	if quotient.Err() != nil {
		return quotient, quotient
	}
	return quotient, a.Remainder(b)
}

var errComplexFloor = errors.New("complex numbers cannot be rounded down")

// safeDivisor returns the integer divisors b with 0 and −1 replaced by 1: on a CPU, a division by 0 ends the process,
// as does the minimum integer divided by −1 (faults integer-division-by-zero and integer-division-overflow). special
// marks the replaced elements. The quotient there is a·b.
func safeDivisor(b *Array) (special, divisor *Array) {
	special = b.Equal(Zeros(b.DType()))
	if b.DType() >= Int8 && b.DType() <= Int64 {
		special = special.LogicalOr(b.Equal(Ones(b.DType()).Neg()))
	}
	return special, Where(special, Ones(b.DType()), b)
}

// Pow returns a raised to the power b, broadcast and promoted. A negative power of integers is 0, also of 1 and −1.
func (a *Array) Pow(b *Array) *Array {
	if a.DType().exact() || !a.IsTraced() || b.IsTraced() {
		return mlxPower(a, b)
	}
	// For the exponent 0, MLX multiplies the gradient by 0·a⁻¹, which is NaN for a = 0 (fault power-gradient-zero).
	// 1⁰ has the same value as a⁰, and no gradient flows to a.
	var result *Array
	WithScope(func() {
		base := a
		if b.Err() == nil {
			base = Where(b.Equal(Zeros(b.DType())), Ones(a.DType()), a)
		}
		result = mlxPower(base, b).Keep()
	})
	return result
}

// Maximum returns the larger of a and b, broadcast and promoted; NaN if either is NaN.
func (a *Array) Maximum(b *Array) *Array {
	return mlxMaximum(a, b)
}

// Minimum returns the smaller of a and b, broadcast and promoted; NaN if either is NaN.
func (a *Array) Minimum(b *Array) *Array {
	return mlxMinimum(a, b)
}

// ClipTo limits the elements to low … high, which are broadcast to a and promoted; nil is no limit. A NaN in a or in a
// limit gives NaN. Where low exceeds high, the result is high.
func (a *Array) ClipTo(low, high *Array) *Array { return mlxClip(a, low, high) }

// Neg returns −a. A boolean a is an error.
func (a *Array) Neg() *Array { return mlxNegative(a) }

// Abs returns the absolute value.
func (a *Array) Abs() *Array { return mlxAbs(a) }

// Sign returns −1, 0 or 1. For complex numbers it returns a/|a|, for NaN 0.
func (a *Array) Sign() *Array { return mlxSign(a) }

// Reciprocal returns 1/a. Integers and booleans are computed as float32.
func (a *Array) Reciprocal() *Array { return mlxReciprocal(a) }

// Square returns a·a.
func (a *Array) Square() *Array { return mlxSquare(a) }

// Sqrt returns the square root, NaN for negative numbers. Integers and booleans are computed as float32.
func (a *Array) Sqrt() *Array { return mlxSqrt(a) }

// Rsqrt returns 1/√a, ∞ for 0. Integers and booleans are computed as float32.
func (a *Array) Rsqrt() *Array { return mlxRsqrt(a) }

// StopGradient returns a as a constant for transforms: no gradient flows through the result.
func (a *Array) StopGradient() *Array {
	return mlxStopGradient(a)
}
