package mlxc

// #include "mlxg.h"
import "C"

// Comparisons and logic, element by element. Operands are broadcast and promoted
// as in arithmetic; results are booleans. A NaN is equal to nothing, itself
// included. Logic counts every element that is not 0 as true.

// Equal returns a = b as booleans.
func (a *Array) Equal(b *Array) *Array {
	return binary("equal", C.mlxg_binary_fn(C.mlx_equal), a, b)
}

// NotEqual returns a ≠ b as booleans.
func (a *Array) NotEqual(b *Array) *Array {
	return binary("not_equal", C.mlxg_binary_fn(C.mlx_not_equal), a, b)
}

// Greater returns a > b as booleans.
func (a *Array) Greater(b *Array) *Array {
	return binary("greater", C.mlxg_binary_fn(C.mlx_greater), a, b)
}

// GreaterEqual returns a ≥ b as booleans.
func (a *Array) GreaterEqual(b *Array) *Array {
	return binary("greater_equal", C.mlxg_binary_fn(C.mlx_greater_equal), a, b)
}

// Less returns a < b as booleans.
func (a *Array) Less(b *Array) *Array {
	return binary("less", C.mlxg_binary_fn(C.mlx_less), a, b)
}

// LessEqual returns a ≤ b as booleans.
func (a *Array) LessEqual(b *Array) *Array {
	return binary("less_equal", C.mlxg_binary_fn(C.mlx_less_equal), a, b)
}

// IsNaN reports which elements are NaN, as booleans.
func (a *Array) IsNaN() *Array { return unary("isnan", C.mlxg_unary_fn(C.mlx_isnan), a) }

// LogicalAnd returns a ∧ b as booleans.
func (a *Array) LogicalAnd(b *Array) *Array {
	return binary("logical_and", C.mlxg_binary_fn(C.mlx_logical_and), a, b)
}

// LogicalOr returns a ∨ b as booleans.
func (a *Array) LogicalOr(b *Array) *Array {
	return binary("logical_or", C.mlxg_binary_fn(C.mlx_logical_or), a, b)
}

// LogicalNot returns ¬a as booleans.
func (a *Array) LogicalNot() *Array {
	return unary("logical_not", C.mlxg_unary_fn(C.mlx_logical_not), a)
}

// Where returns a's elements where cond is true and b's elsewhere.
func Where(cond, a, b *Array) *Array {
	return ternary("where", C.mlxg_ternary_fn(C.mlx_where), cond, a, b)
}
