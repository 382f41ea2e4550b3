package executor

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

// roundToBfloat rounds as hardware does: to nearest, ties to even.
func roundToBfloat(f float32) uint16 {
	b := math.Float32bits(f)
	if f != f {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func TestSmallFloats(t *testing.T) {
	testSmallFloats(t, source(t, "scalars"))
}

// TestSmallFloatsInSoftware is TestSmallFloats without the processor's conversion instructions for half.
func TestSmallFloatsInSoftware(t *testing.T) {
	testSmallFloats(t, "#undef __F16C__\n"+source(t, "scalars"))
}

// TestVectorConversions compares the conversions of consecutive halves with the conversions of single ones, for every
// half, and for the floats at and next to the midpoints between halves.
func TestVectorConversions(t *testing.T) {
	for _, undefined := range []string{"", "#undef __AVX512F__\n"} {
		t.Run(undefined, func(t *testing.T) {
			withCompilers(t, undefined+source(t, "conversions"), func(t *testing.T, l *Library) []Buffer {
				const n = 27
				const threads = 4 * ((1<<16 + n - 1) / n)
				bits, floats := make([]uint16, threads*n), make([]float32, threads*n)
				for i := range bits {
					bits[i] = uint16(i)
					half := math.Float32bits(float16.Frombits(uint16(i)).Float32())
					floats[i] = math.Float32frombits(half + [...]uint32{0, 0xfff, 0x1000, 0x1001}[i>>16&3])
				}
				differences := make([]uint32, threads)
				run(t, l, [3]int{threads, 1, 1}, [3]int{256, 1, 1}, []Buffer{buf(bits), buf(floats)}, []Buffer{buf(differences)})
				require.Equal(t, make([]uint32, threads), differences)
				return nil
			})
		})
	}
}

func testSmallFloats(t *testing.T, text string) {
	withCompilers(t, text, func(t *testing.T, l *Library) []Buffer {
		require.False(t, l.NeedsFibers())
		const n = 1 << 16
		floats, others := make([]uint32, n), make([]uint16, n)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range floats {
			others[i] = uint16(rng.Uint32())
			// A random one of: the half with the pattern i, or a float at or next to the midpoint to the next half;
			// the same for bfloat; any float.
			half := math.Float32bits(float16.Frombits(uint16(i)).Float32())
			floats[i] = [...]uint32{
				half, half + 0x1000, half + 0xfff, half + 0x1001,
				uint32(i)<<16 + 0x8000, uint32(i)<<16 + 0x7fff, uint32(i)<<16 + 0x8001, rng.Uint32(),
			}[rng.IntN(8)]
		}
		fromHalf, fromBfloat := make([]float32, n), make([]float32, n)
		toHalf, toBfloat, arithmetic := make([]uint16, n), make([]uint16, n), make([]uint16, 8*n)
		run(t, l, [3]int{n, 1, 1}, [3]int{256, 1, 1}, []Buffer{buf(floats), buf(others)},
			[]Buffer{buf(fromHalf), buf(fromBfloat), buf(toHalf), buf(toBfloat), buf(arithmetic)})

		sameHalf := func(want float32, got uint16, i int, what string) {
			h := float16.Fromfloat32(want)
			if want != want {
				require.True(t, float16.Frombits(got).IsNaN(), "%s of %#x: %#x", what, i, got)
			} else if uint16(h) != got {
				require.Equal(t, uint16(h), got, "%s of %#x and %#x", what, i, others[i])
			}
		}
		for i := range n {
			want := float16.Frombits(uint16(i)).Float32()
			if want != want {
				require.True(t, fromHalf[i] != fromHalf[i])
			} else if math.Float32bits(want) != math.Float32bits(fromHalf[i]) {
				require.Equal(t, want, fromHalf[i], "half %#x", i)
			}
			wantB := math.Float32frombits(uint32(i) << 16)
			if math.Float32bits(wantB) != math.Float32bits(fromBfloat[i]) {
				require.True(t, wantB != wantB && fromBfloat[i] != fromBfloat[i], "bfloat %#x", i)
			}
			f := math.Float32frombits(floats[i])
			sameHalf(f, toHalf[i], i, "half of float")
			if f != f {
				require.NotZero(t, toBfloat[i]&0x7f)
			} else if roundToBfloat(f) != toBfloat[i] {
				require.Equal(t, roundToBfloat(f), toBfloat[i], "bfloat of %v", f)
			}
			a, b := want, float16.Frombits(others[i]).Float32()
			r := arithmetic[8*i : 8*i+8]
			sameHalf(a+b, r[0], i, "sum")
			sameHalf(a-b, r[1], i, "difference")
			sameHalf(a*b, r[2], i, "product")
			sameHalf(a/b, r[3], i, "quotient")
			if r[4] != uint16(i)^0x8000 {
				require.Equal(t, uint16(i)^0x8000, r[4], "negation")
			}
			var flags uint16
			for bit, is := range []bool{a < b, a == b, a >= 1, 0.5 < a} {
				if is {
					flags |= 1 << bit
				}
			}
			if flags != r[5] {
				require.Equal(t, flags, r[5], "comparisons of %v and %v", a, b)
			}
			acc := a
			for _, step := range []func(float32) float32{
				func(x float32) float32 { return x + b },
				func(x float32) float32 { return x * 2 },
				func(x float32) float32 { return x + 1 },
			} {
				acc = float16.Fromfloat32(step(acc)).Float32()
			}
			sameHalf(acc, r[6], i, "assignments")
			sameHalf(float32(math.Sqrt(float64(a))), r[7], i, "root")
		}
		// Compilers may give NaNs of half different payloads, so half is not compared.
		return []Buffer{raw(fromBfloat), raw(toBfloat)}
	})
}

func TestVectors(t *testing.T) {
	withCompilers(t, source(t, "vectors"), func(t *testing.T, l *Library) []Buffer {
		ok := make([]byte, 256)
		run(t, l, [3]int{1, 1, 1}, [3]int{1, 1, 1}, []Buffer{buf([]float32{1, 2, 3, 4})}, []Buffer{buf(ok)})
		n := 0
		for ; ok[n] != 0; n++ {
			require.EqualValues(t, 1, ok[n], "check %d", n)
		}
		require.Greater(t, n, 35)
		return nil
	})
}

func TestMath(t *testing.T) {
	withCompilers(t, source(t, "math"), func(t *testing.T, l *Library) []Buffer {
		const n = 1000
		x := make([]float32, n)
		rng := rand.New(rand.NewPCG(3, 4))
		for i := range x {
			x[i] = (rng.Float32() - 0.5) * 20
		}
		one := func(f func(float64) float64) func(v, u float64) float64 {
			return func(v, _ float64) float64 { return f(v) }
		}
		abs := func(f func(float64) float64) func(v, u float64) float64 {
			return func(v, _ float64) float64 { return f(math.Abs(v)) }
		}
		want := []func(v, u float64) float64{
			one(math.Exp), one(math.Exp2), abs(math.Log), abs(math.Log2), abs(math.Log10),
			one(math.Sin), one(math.Cos), one(math.Tanh),
			abs(func(v float64) float64 { return 1 / math.Sqrt(v) }), abs(math.Sqrt),
			func(v, u float64) float64 { return math.Pow(math.Abs(v), u) },
			func(v, u float64) float64 { return math.FMA(v, u, 1) },
			math.Atan2, one(math.Sinh), one(math.Exp), abs(math.Log),
			one(func(v float64) float64 { return math.Acos(v / 64) }), one(math.Asinh), abs(math.Log1p), math.Mod,
		}
		y := make([]float32, len(want)*n)
		run(t, l, [3]int{n, len(want), 1}, [3]int{64, 1, 1}, []Buffer{buf(x)}, []Buffer{buf(y)})
		for f, want := range want {
			for i, v := range x {
				w := want(float64(v), float64(x[n-1-i]))
				got := float64(y[f*n+i])
				require.InDelta(t, w, got, 3*ulp(w), "function %d of %v and %v", f, v, x[n-1-i])
			}
		}
		return []Buffer{raw(y)}
	})
}

// ulp returns the distance between adjacent floats at v.
func ulp(v float64) float64 {
	f := math.Abs(v)
	return float64(math.Nextafter32(float32(f), math.MaxFloat32)) - float64(float32(f))
}
