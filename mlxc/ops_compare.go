package mlxc

import "math"

// Comparisons and logic, element by element. Operands are broadcast and promoted
// as in arithmetic; results are booleans. A NaN is equal to nothing, itself
// included. Logic counts every element that is not 0 as true.

// Equal returns a = b as booleans.
func (a *Array) Equal(b *Array) *Array {
	return mlxEqual(a, b)
}

// NotEqual returns a ≠ b as booleans.
func (a *Array) NotEqual(b *Array) *Array {
	return mlxNotEqual(a, b)
}

// Greater returns a > b as booleans.
func (a *Array) Greater(b *Array) *Array {
	return mlxGreater(a, b)
}

// GreaterEqual returns a ≥ b as booleans.
func (a *Array) GreaterEqual(b *Array) *Array {
	return mlxGreaterEqual(a, b)
}

// Less returns a < b as booleans.
func (a *Array) Less(b *Array) *Array {
	return mlxLess(a, b)
}

// LessEqual returns a ≤ b as booleans.
func (a *Array) LessEqual(b *Array) *Array {
	return mlxLessEqual(a, b)
}

// IsNaN reports which elements are NaN, as booleans. A complex number is if one of its
// parts is; an integer never.
func (a *Array) IsNaN() *Array { return mlxIsnan(a) }

// IsInf reports which elements are ∞ or −∞, as booleans. A complex number is if one of its
// parts is; an integer never.
func (a *Array) IsInf() *Array { return mlxIsinf(a) }

// IsFinite reports which elements are neither NaN nor infinite, as booleans.
func (a *Array) IsFinite() *Array { return mlxIsfinite(a) }

// IsPosInf reports which elements are ∞, as booleans.
func (a *Array) IsPosInf() *Array { return mlxIsposinf(a) }

// IsNegInf reports which elements are −∞, as booleans.
func (a *Array) IsNegInf() *Array { return mlxIsneginf(a) }

// Tolerance says what counts as close: |a − b| ≤ Absolute + Relative·|b|. A 0 stands for
// numpy's default. Infinities of one sign are close to each other and to nothing else.
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

// IsClose reports which elements of a and b, broadcast to each other, are equal within the
// tolerance, as booleans. It is computed in the dtype that a and b are promoted to, and of
// integers and booleans in float32.
func (a *Array) IsClose(b *Array, t Tolerance) *Array {
	return closeTo(a, b, t, mlxIsclose)
}

// AllClose reports whether all elements are IsClose, as one boolean.
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

// ArrayEqual reports whether a and b have one shape and equal elements, as one boolean;
// dtypes are promoted. With equalNaN, NaN equals NaN.
func (a *Array) ArrayEqual(b *Array, equalNaN bool) *Array {
	return mlxArrayEqual(a, b, equalNaN)
}

// LogicalAnd returns a ∧ b as booleans.
func (a *Array) LogicalAnd(b *Array) *Array {
	return mlxLogicalAnd(a, b)
}

// LogicalOr returns a ∨ b as booleans.
func (a *Array) LogicalOr(b *Array) *Array {
	return mlxLogicalOr(a, b)
}

// LogicalXor returns whether one of a and b is true and the other is not, as booleans.
func (a *Array) LogicalXor(b *Array) *Array {
	return mlxLogicalXor(a, b)
}

// LogicalNot returns ¬a as booleans.
func (a *Array) LogicalNot() *Array {
	return mlxLogicalNot(a)
}

// Where returns a's elements where cond is true and b's elsewhere. All three are broadcast
// to each other, and a and b promoted; cond is true where it is not 0.
func Where(cond, a, b *Array) *Array {
	return mlxWhere(cond, a, b)
}

// NaNToNumConfig says what NaNToNum puts in the place of what is no number.
type NaNToNumConfig struct {
	NaN            float32
	PosInf, NegInf *float32 // nil stands for the largest and the least finite number
}

// NaNToNum returns a with substitutes for NaN, ∞ and −∞; by default 0 and the dtype's
// largest and least finite number. Arrays without such values, of integers and booleans,
// stay as they are. Complex numbers are an error: their parts have substitutes.
func (a *Array) NaNToNum(s NaNToNumConfig) *Array {
	if a.DType() != Float64 { // which MLX has not taken up
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
