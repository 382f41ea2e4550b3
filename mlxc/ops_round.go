package mlxc

import "fmt"

// Element-wise rounding, in a's dtype. Integers are returned unchanged. For complex numbers only Round works; it rounds
// both parts.

// Floor returns the largest integer not above a.
func (a *Array) Floor() *Array { return mlxFloor(a) }

// Ceil returns the smallest integer not below a.
func (a *Array) Ceil() *Array { return mlxCeil(a) }

// Trunc rounds toward zero.
func (a *Array) Trunc() *Array { return mlxTrunc(a) }

// Round rounds to the nearest integer, ties to even.
func (a *Array) Round() *Array { return mlxRound(a, 0) }

// RoundTo rounds to a number of decimal places; a negative number rounds to tens, hundreds and so on. It multiplies by
// 10^decimals, rounds and divides: if the product overflows the dtype, so does the result. Integers, float16 and
// bfloat16 are computed as float32.
func (a *Array) RoundTo(decimals int) *Array {
	const op = "round"
	const most = 37 // float32 cannot hold 10^38 and its reciprocal
	if decimals < -most || decimals > most {
		return invalid(opError(op, fmt.Errorf("decimals is %d: it must be −%d to %[2]d", decimals, most), a))
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
