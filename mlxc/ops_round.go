package mlxc

import "fmt"

// Rounding, element by element, in a's dtype. Integers are whole already. Complex
// numbers can be rounded by Round alone, which does so to both of their parts.

// Floor returns the largest whole number that is not above a.
func (a *Array) Floor() *Array { return mlxFloor(a) }

// Ceil returns the smallest whole number that is not below a.
func (a *Array) Ceil() *Array { return mlxCeil(a) }

// Trunc returns a without its fraction.
func (a *Array) Trunc() *Array { return mlxTrunc(a) }

// Round returns the nearest whole number; of two that are equally near, the even one.
func (a *Array) Round() *Array { return mlxRound(a, 0) }

// RoundTo rounds to a number of decimal places; to tens, hundreds and so on where it is
// negative. It multiplies with 10^decimals, rounds and divides, in a's dtype: beyond what
// that can hold the result is ∞ or NaN. Integers are computed as float32.
func (a *Array) RoundTo(decimals int) *Array {
	most := 37 // beyond it float32 cannot hold 10^decimals, or its reciprocal
	if a.DType() == Float16 {
		most = 4
	}
	if decimals < -most || decimals > most {
		return invalid(opError("round", fmt.Errorf("%d decimals: there may be −%d to %[2]d", decimals, most), a))
	}
	return mlxRound(a, decimals)
}
