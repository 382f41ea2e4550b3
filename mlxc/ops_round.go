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
// negative. It multiplies with 10^decimals, rounds and divides: where the product is beyond
// the dtype, so is the result. Integers and half dtypes are computed as float32.
func (a *Array) RoundTo(decimals int) *Array {
	const op = "round"
	const most = 37 // beyond it float32 cannot hold 10^decimals, or its reciprocal
	if decimals < -most || decimals > most {
		return invalid(opError(op, fmt.Errorf("%d decimals: there may be −%d to %[2]d", decimals, most), a))
	}
	d := a.DType()
	if d != Float16 && d != BFloat16 {
		return mlxRound(a, decimals)
	}
	single := a.AsType(Float32)
	defer single.Free()
	rounded := mlxRound(single, decimals)
	defer rounded.Free()
	return rounded.AsType(d)
}
