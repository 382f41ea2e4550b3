package bfloat16

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every BFloat16 converts to float32 and back unchanged.
func TestRoundTripOfEveryValue(t *testing.T) {
	for i := range 1 << 16 {
		b := FromBits(uint16(i))
		got := FromFloat32(b.Float32())
		if b.IsNaN() {
			require.True(t, got.IsNaN(), "%#04x", i)
			require.Equal(t, b.Bits()&0x8000, got.Bits()&0x8000, "sign of NaN %#04x", i)
			continue
		}
		require.Equal(t, b, got, "%#04x", i)
	}
}

// For every pair of neighbors, points around their midpoint round to the nearer one, and the midpoint to the even one.
func TestRoundingAroundEveryMidpoint(t *testing.T) {
	for i := range 0x7f80 {
		low, high := FromBits(uint16(i)), FromBits(uint16(i+1))
		mid := math.Float32frombits(uint32(i)<<16 | 0x8000)
		even := low
		if i&1 == 1 {
			even = high
		}
		for _, sign := range []float32{1, -1} {
			s := uint16(0)
			if sign < 0 {
				s = 0x8000
			}
			require.Equal(t, even.Bits()|s, FromFloat32(sign*mid).Bits(), "midpoint above %#04x", i)
			require.Equal(t, low.Bits()|s, FromFloat32(sign*math.Nextafter32(mid, 0)).Bits())
			require.Equal(t, high.Bits()|s, FromFloat32(sign*math.Nextafter32(mid, math.MaxFloat32)).Bits())
		}
	}
}

// FromFloat32 agrees with the rounding of big.Float for positive normal numbers of all float32 exponents but the
// largest.
func TestAgainstBigFloat(t *testing.T) {
	for bits := uint32(0); bits < 0x7f000000; bits += 65521 {
		f := math.Float32frombits(bits)
		if f < 1.2e-38 {
			continue // big.Float has no subnormals
		}
		want, _ := new(big.Float).SetPrec(8).SetMode(big.ToNearestEven).SetFloat64(float64(f)).Float32()
		require.Equal(t, want, FromFloat32(f).Float32(), "%v", f)
	}
}

func TestSpecialValues(t *testing.T) {
	inf := float32(math.Inf(1))
	require.True(t, FromFloat32(inf).IsInf(1))
	require.True(t, FromFloat32(-inf).IsInf(-1))
	require.True(t, FromFloat32(math.MaxFloat32).IsInf(1), "rounds up to infinity")
	require.False(t, FromFloat32(3.38e38).IsInf(0))
	for _, payload := range []uint32{0x7f800001, 0x7fffffff, 0xff800001, 0x7fc00000} {
		require.True(t, FromFloat32(math.Float32frombits(payload)).IsNaN(), "%#x", payload)
	}
	require.Equal(t, uint16(0x8000), FromFloat32(float32(math.Copysign(0, -1))).Bits())
	require.EqualValues(t, 1+Epsilon, FromBits(0x3f81).Float32())
}

func ExampleFromFloat32() {
	fmt.Println(FromFloat32(3.14159), FromFloat32(1.0/3))
	// Output: 3.140625 0.33398438
}
