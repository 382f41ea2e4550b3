package mlxc

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

// IsNaN reports which elements are NaN, as booleans.
func (a *Array) IsNaN() *Array { return mlxIsnan(a) }

// LogicalAnd returns a ∧ b as booleans.
func (a *Array) LogicalAnd(b *Array) *Array {
	return mlxLogicalAnd(a, b)
}

// LogicalOr returns a ∨ b as booleans.
func (a *Array) LogicalOr(b *Array) *Array {
	return mlxLogicalOr(a, b)
}

// LogicalNot returns ¬a as booleans.
func (a *Array) LogicalNot() *Array {
	return mlxLogicalNot(a)
}

// Where returns a's elements where cond is true and b's elsewhere.
func Where(cond, a, b *Array) *Array {
	return mlxWhere(cond, a, b)
}
