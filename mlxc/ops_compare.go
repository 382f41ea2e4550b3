package mlxc

import "math"

// Element-wise comparisons and logic. Operands are broadcast and promoted as in arithmetic; results are boolean. NaN is
// not equal to any number, including itself. Every element other than 0 is true.

// Equal returns a = b.
func (a *Array) Equal(b *Array) *Array {
	return mlxEqual(a, b)
}

// NotEqual returns a ≠ b.
func (a *Array) NotEqual(b *Array) *Array {
	return mlxNotEqual(a, b)
}

// Greater returns a > b.
func (a *Array) Greater(b *Array) *Array {
	return mlxGreater(a, b)
}

// GreaterEqual returns a ≥ b.
func (a *Array) GreaterEqual(b *Array) *Array {
	return mlxGreaterEqual(a, b)
}

// Less returns a < b.
func (a *Array) Less(b *Array) *Array {
	return mlxLess(a, b)
}

// LessEqual returns a ≤ b.
func (a *Array) LessEqual(b *Array) *Array {
	return mlxLessEqual(a, b)
}

// IsNaN reports which elements are NaN. A complex number is NaN if one of its parts is; an integer never is.
func (a *Array) IsNaN() *Array { return mlxIsnan(a) }

// IsInf reports which elements are ∞ or −∞. A complex number is infinite if one of its parts is; an integer never is.
func (a *Array) IsInf() *Array { return mlxIsinf(a) }

// IsFinite reports which elements are neither NaN nor infinite.
func (a *Array) IsFinite() *Array { return mlxIsfinite(a) }

// IsPosInf reports which elements are ∞.
func (a *Array) IsPosInf() *Array { return mlxIsposinf(a) }

// IsNegInf reports which elements are −∞.
func (a *Array) IsNegInf() *Array { return mlxIsneginf(a) }

// Tolerance defines closeness: |a − b| ≤ Absolute + Relative·|b|. 0 stands for numpy's default. Infinities of the same
// sign are close to each other and to nothing else.
type Tolerance struct {
	Relative float64 // 0 stands for 1e-5
	Absolute float64 // 0 stands for 1e-8
	EqualNaN bool    // NaN is close to NaN
}

func (t Tolerance) orDefault() Tolerance {
	if t.Relative == 0 {
		t.Relative = 1e-5
	}
	if t.Absolute == 0 {
		t.Absolute = 1e-8
	}
	return t
}

// IsClose reports which elements of a and b, broadcast to each other, are equal within the tolerance. It computes in
// the promoted dtype, for integers and booleans in float32.
func (a *Array) IsClose(b *Array, t Tolerance) *Array {
	return closeTo(a, b, t, mlxIsclose)
}

// AllClose reports whether all elements are close in the sense of IsClose, as one boolean.
func (a *Array) AllClose(b *Array, t Tolerance) *Array {
	return closeTo(a, b, t, mlxAllclose)
}

func closeTo(a, b *Array, t Tolerance, f func(a, b *Array, relative, absolute float64, equalNaN bool) *Array) *Array {
	t = t.orDefault()
	if a.DType().exact() && b.DType().exact() {
		a = a.AsType(Float32) // the difference of unsigned integers would wrap around
		defer a.Free()
	}
	return f(a, b, t.Relative, t.Absolute, t.EqualNaN)
}

// ArrayEqual reports whether a and b have the same shape and equal elements after promotion, as one boolean. With
// equalNaN, NaN equals NaN.
func (a *Array) ArrayEqual(b *Array, equalNaN bool) *Array {
	return mlxArrayEqual(a, b, equalNaN)
}

// LogicalAnd returns a ∧ b.
func (a *Array) LogicalAnd(b *Array) *Array {
	return mlxLogicalAnd(a, b)
}

// LogicalOr returns a ∨ b.
func (a *Array) LogicalOr(b *Array) *Array {
	return mlxLogicalOr(a, b)
}

// LogicalXor reports whether exactly one of a and b is true.
func (a *Array) LogicalXor(b *Array) *Array {
	return mlxLogicalXor(a, b)
}

// LogicalNot returns ¬a.
func (a *Array) LogicalNot() *Array {
	return mlxLogicalNot(a)
}

// Where returns elements of a where cond is true, and elements of b elsewhere. All three are broadcast to each other; a
// and b are promoted. cond is true where it is not 0.
func Where(cond, a, b *Array) *Array {
	return mlxWhere(cond, a, b)
}

// NaNToNumConfig holds the replacements that NaNToNum uses.
type NaNToNumConfig struct {
	NaN            float32
	PosInf, NegInf *float32 // nil for the maximum and the minimum finite number
}

// NaNToNum replaces NaN, ∞ and −∞, by default by 0 and the maximum and minimum finite number of the dtype. Integers and
// booleans are returned unchanged. Complex numbers are an error: replace their parts.
func (a *Array) NaNToNum(s NaNToNumConfig) *Array {
	if a.DType() != Float64 { // MLX does not support float64
		return mlxNanToNum(a, s.NaN, s.PosInf, s.NegInf)
	}
	var result *Array
	WithScope(func() {
		or := func(s *float32, limit float64) *Array {
			if s != nil {
				limit = float64(*s)
			}
			return Scalar(limit)
		}
		finite := Where(a.IsNaN(), Scalar(float64(s.NaN)), a)
		finite = Where(a.IsPosInf(), or(s.PosInf, math.MaxFloat64), finite)
		result = Where(a.IsNegInf(), or(s.NegInf, -math.MaxFloat64), finite).Keep()
	})
	return result
}
