package mlxc

// Element-wise bit operations. Operands are integers or booleans, broadcast and promoted as in arithmetic;
// floating-point operands are an error.

// BitwiseAnd returns a & b.
func (a *Array) BitwiseAnd(b *Array) *Array { return mlxBitwiseAnd(a, b) }

// BitwiseOr returns a | b.
func (a *Array) BitwiseOr(b *Array) *Array { return mlxBitwiseOr(a, b) }

// BitwiseXor returns a ^ b.
func (a *Array) BitwiseXor(b *Array) *Array { return mlxBitwiseXor(a, b) }

// BitwiseInvert returns ^a.
func (a *Array) BitwiseInvert() *Array { return mlxBitwiseInvert(a) }

// LeftShift returns a << n as Go computes it: 0 if n is at least the number of bits. Booleans are shifted as uint8. A
// negative n counts as a large one.
func (a *Array) LeftShift(n *Array) *Array { return shift(a, n, mlxLeftShift, false) }

// RightShift returns a >> n as Go computes it: if n is at least the number of bits, 0 for non-negative and −1 for
// negative numbers. Booleans are shifted as uint8. A negative n counts as a large one.
func (a *Array) RightShift(n *Array) *Array { return shift(a, n, mlxRightShift, true) }

// shift limits the counts: shifts by negative or too large counts are undefined behavior in C.
func shift(a, n *Array, f func(a, n *Array) *Array, keepsSign bool) *Array {
	result := f(a, n)
	d := result.DType()
	if d == Invalid || n.DType() == Bool { // the result is invalid, or all counts are at most 1
		return result
	}
	result.Free()
	WithScope(func() {
		bits, zero := 8*d.Size(), Zeros(n.DType())
		inside := n.Less(Scalar(uint8(bits)).AsType(n.DType())).LogicalAnd(n.GreaterEqual(zero))
		if keepsSign && d >= Int8 {
			result = f(a, Where(inside, n, Scalar(uint8(bits-1)).AsType(n.DType()))).Keep()
		} else {
			result = Where(inside, f(a, Where(inside, n, zero)), Zeros(d)).Keep()
		}
	})
	return result
}
