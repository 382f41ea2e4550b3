// Package bfloat16 provides the 16-bit brain floating-point format: the upper
// half of an IEEE 754 binary32, with 8 bits of exponent and 7 of mantissa.
package bfloat16

import (
	"math"
	"strconv"
)

// BFloat16 is a bfloat16 number, held as its bits.
type BFloat16 uint16

// Epsilon is the distance from 1 to the next larger BFloat16, 2⁻⁷.
const Epsilon = 1.0 / 128

// FromFloat32 rounds f to the nearest BFloat16, ties to even. Values beyond the
// largest finite BFloat16 after rounding become infinities; a NaN stays a NaN of
// the same sign, made quiet, with the upper bits of its payload.
func FromFloat32(f float32) BFloat16 {
	bits := math.Float32bits(f)
	if bits&0x7fffffff > 0x7f800000 {
		// Rounding could carry a NaN's payload into the exponent.
		return BFloat16(bits>>16) | 0x40
	}
	// Adding just under half of the last kept place, plus that place's own bit,
	// rounds to nearest even and carries into the exponent as it should.
	return BFloat16((bits + 0x7fff + bits>>16&1) >> 16)
}

// FromBits returns the BFloat16 with the given bits.
func FromBits(bits uint16) BFloat16 { return BFloat16(bits) }

// Bits returns the bits of b.
func (b BFloat16) Bits() uint16 { return uint16(b) }

// Float32 returns the value of b, exactly.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// IsNaN reports whether b is not a number.
func (b BFloat16) IsNaN() bool { return b&0x7fff > 0x7f80 }

// IsInf reports whether b is an infinity: positive for sign > 0, negative for
// sign < 0, either for 0.
func (b BFloat16) IsInf(sign int) bool {
	return sign >= 0 && b == 0x7f80 || sign <= 0 && b == 0xff80
}

// String formats the value with the fewest digits that identify it among float32s.
func (b BFloat16) String() string { return strconv.FormatFloat(float64(b.Float32()), 'g', -1, 32) }
