package mlxc

// Element-wise arithmetic. Operands of different shapes are broadcast to a common
// shape, and of different dtypes promoted to a common dtype, by MLX's rules; if
// that cannot be done the result is invalid.

// Add returns a + b, broadcast to each other and promoted.
func (a *Array) Add(b *Array) *Array { return mlxAdd(a, b) }

// Sub returns a − b, broadcast to each other and promoted.
func (a *Array) Sub(b *Array) *Array {
	return mlxSubtract(a, b)
}

// Mul returns a · b, element by element, broadcast to each other and promoted.
func (a *Array) Mul(b *Array) *Array {
	return mlxMultiply(a, b)
}

// Div returns a / b, broadcast to each other and promoted. Integers and booleans are divided
// as float32.
func (a *Array) Div(b *Array) *Array {
	return mlxDivide(a, b)
}

// FloorDivide returns ⌊a / b⌋, of integers too. An integer divided by 0 gives 0.
func (a *Array) FloorDivide(b *Array) *Array {
	q := mlxFloorDivide(a, b)
	if !q.DType().exact() {
		return q
	}
	q.Free()
	WithScope(func() {
		special, divisor := safeDivisor(b)
		zero := Zeros(Int8)
		// MLX rounds towards zero.
		q = mlxFloorDivide(a, divisor)
		above := a.Less(zero).NotEqual(divisor.Less(zero)).LogicalAnd(q.Mul(divisor).NotEqual(a))
		q = Where(special, a.Mul(b), q.Sub(above)).Keep()
	})
	return q
}

// Remainder returns a − b·⌊a / b⌋, which has the sign of b. That of an integer by 0
// is 0.
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

// DivMod returns a.FloorDivide(b) and a.Remainder(b). Complex numbers are an error.
func (a *Array) DivMod(b *Array) (quotient, remainder *Array) {
	quotient = a.FloorDivide(b)
	if quotient.Err() != nil {
		return quotient, quotient
	}
	return quotient, a.Remainder(b)
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

// Pow returns a raised to b, broadcast to each other and promoted.
func (a *Array) Pow(b *Array) *Array {
	return mlxPower(a, b)
}

// Maximum returns the larger of a and b, broadcast to each other and promoted; NaN if either
// is.
func (a *Array) Maximum(b *Array) *Array {
	return mlxMaximum(a, b)
}

// Minimum returns the smaller of a and b, broadcast to each other and promoted; NaN if either
// is.
func (a *Array) Minimum(b *Array) *Array {
	return mlxMinimum(a, b)
}

// ClipTo returns the elements limited to low … high, which are broadcast to a and promoted
// with it; nil for no limit. NaN stays NaN, also that of a limit. Where low is above high
// the result is high.
func (a *Array) ClipTo(low, high *Array) *Array { return mlxClip(a, low, high) }

// Neg returns −a. Booleans are an error.
func (a *Array) Neg() *Array { return mlxNegative(a) }

// Abs returns the absolute value.
func (a *Array) Abs() *Array { return mlxAbs(a) }

// Sign returns −1, 0 or 1; a/|a| of complex numbers, and 0 of NaN.
func (a *Array) Sign() *Array { return mlxSign(a) }

// Reciprocal returns 1/a; of integers and booleans as float32.
func (a *Array) Reciprocal() *Array { return mlxReciprocal(a) }

// Square returns a·a.
func (a *Array) Square() *Array { return mlxSquare(a) }

// Sqrt returns the square root; NaN of negative numbers. Integers and booleans are computed
// as float32.
func (a *Array) Sqrt() *Array { return mlxSqrt(a) }

// Rsqrt returns the reciprocal square root, 1/√a; ∞ of 0. Integers and booleans are computed
// as float32.
func (a *Array) Rsqrt() *Array { return mlxRsqrt(a) }

// StopGradient returns a; no gradient flows through it.
func (a *Array) StopGradient() *Array {
	return mlxStopGradient(a)
}
