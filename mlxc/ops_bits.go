package mlxc

// Operations on bits, element by element. Operands are integers or booleans, broadcast
// and promoted as in arithmetic; floating-point numbers are an error.

// BitwiseAnd returns a & b.
func (a *Array) BitwiseAnd(b *Array) *Array { return mlxBitwiseAnd(a, b) }

// BitwiseOr returns a | b.
func (a *Array) BitwiseOr(b *Array) *Array { return mlxBitwiseOr(a, b) }

// BitwiseXor returns a ^ b.
func (a *Array) BitwiseXor(b *Array) *Array { return mlxBitwiseXor(a, b) }

// BitwiseInvert returns a with every bit the other way, ^a.
func (a *Array) BitwiseInvert() *Array { return mlxBitwiseInvert(a) }

// LeftShift returns a << n, as Go computes it: 0 where n is at least the number of bits.
// Booleans are shifted as uint8. A negative n counts as a large one.
func (a *Array) LeftShift(n *Array) *Array { return shift(a, n, mlxLeftShift, false) }

// RightShift returns a >> n, as Go computes it: where n is at least the number of bits, 0,
// or −1 of negative numbers. Booleans are shifted as uint8. A negative n counts as a large
// one.
func (a *Array) RightShift(n *Array) *Array { return shift(a, n, mlxRightShift, true) }

// shift keeps counts from the processor that it would not shift by: C leaves open what it
// does with them.
func shift(a, n *Array, f func(a, n *Array) *Array, keepsSign bool) *Array {
	result := f(a, n)
	d := result.DType()
	if d == Invalid || n.DType() == Bool { // wrong, or 1 at most
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
