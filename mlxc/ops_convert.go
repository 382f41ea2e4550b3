package mlxc

// AsType converts the elements. Numbers that the dtype cannot hold become something that
// it can, as in C; every number but 0 becomes true, NaN too.
func (a *Array) AsType(d DType) *Array {
	return mlxAstype(a, d)
}

// View reads the bytes of the elements as those of dtype d, and changes the size of the
// last axis by the ratio of the element sizes, which must divide it. An array without axes
// keeps its element size.
func (a *Array) View(d DType) *Array {
	return mlxView(a, d)
}

// ToFP8 converts to the 8-bit floating-point format with 4 bits for the exponent (E4M3), in
// uint8. Numbers beyond ±448 become ±448, infinities too. a's dtype is a real
// floating-point one.
func (a *Array) ToFP8() *Array { return mlxToFp8(a) }

// FromFP8 converts what ToFP8 gives, uint8, to the real floating-point dtype d.
func (a *Array) FromFP8(d DType) *Array { return mlxFromFp8(a, d) }
