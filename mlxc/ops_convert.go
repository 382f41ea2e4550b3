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
// uint8, to the nearest number. MLX has no NaN and no infinity in it: what is beyond ±448,
// infinities and NaN too, becomes ±448. a's dtype is a real floating-point one.
func (a *Array) ToFP8() *Array {
	if a.DType() == Float64 { // of which MLX would take the wrong bytes
		a = a.AsType(Float32)
		defer a.Free()
	}
	return mlxToFp8(a)
}

// FromFP8 converts what ToFP8 gives, uint8, to the real floating-point dtype d.
func (a *Array) FromFP8(d DType) *Array {
	if d != Float64 {
		return mlxFromFp8(a, d)
	}
	single := mlxFromFp8(a, Float32)
	defer single.Free()
	return single.AsType(d)
}
