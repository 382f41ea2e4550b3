package mlxc

import (
	"errors"
	"math"
)

// AsType converts the elements to dtype d. Numbers outside the range of d are converted as in C. Every number other
// than 0 becomes true, including NaN.
func (a *Array) AsType(d DType) *Array {
	return mlxAstype(a, d)
}

// View reinterprets the bytes of the elements as dtype d. The size of the last axis changes by the ratio of the element
// sizes, which must divide it. An array without axes keeps its element size.
func (a *Array) View(d DType) *Array {
	if a.NDim() > 0 && d.valid() && a.Dim(-1)*a.DType().Size()/d.Size() > math.MaxInt32 { // MLX counts in 32 bits
		return invalid(opError("view", errors.New("the result's last axis is longer than 2³¹−1"), a))
	}
	return mlxView(a, d)
}

// ToFP8 converts real floating-point numbers to the nearest number of the 8-bit format E4M3 (4 exponent bits), stored
// in uint8. MLX's format has neither NaN nor infinity: values beyond ±448, infinities and NaN become ±448.
func (a *Array) ToFP8() *Array {
	if a.DType() == Float64 { // fault to-fp8-float64
		a = a.AsType(Float32)
		defer a.Free()
	}
	return mlxToFp8(a)
}

// FromFP8 converts the uint8 result of ToFP8 to the real floating-point dtype d.
func (a *Array) FromFP8(d DType) *Array {
	if d != Float64 {
		return mlxFromFp8(a, d)
	}
	single := mlxFromFp8(a, Float32)
	defer single.Free()
	return single.AsType(d)
}
