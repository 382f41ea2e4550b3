package executor

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// runSimd runs testdata/simd.cpp with `lanes` threads. mode selects a function, and arg is its argument. It returns the
// results for uint and for float.
func runSimd(t *testing.T, l *Library, mode, arg, lanes int, x []uint32) ([]uint32, []float32) {
	xf := make([]float32, lanes)
	for i := range xf {
		xf[i] = float32(x[i])
	}
	y, yf := make([]uint32, lanes), make([]float32, lanes)
	run(t, l, [3]int{lanes, 1, 1}, [3]int{32, 1, 1},
		[]Buffer{buf([]int32{int32(mode), int32(arg)}), buf(x), buf(xf)}, []Buffer{buf(y), buf(yf)})
	return y, yf
}

// A simdFunction is a reference: it returns the result of a lane, given the values of all lanes. uint64 holds the
// values of both element types.
type simdFunction func(v []uint64, lane, arg int) uint64

func fold(f func(a, b uint64) uint64) simdFunction {
	return func(v []uint64, lane, _ int) uint64 {
		r := v[0]
		for _, x := range v[1:] {
			r = f(r, x)
		}
		return r
	}
}

// prefix returns a function that folds the values before the lane. inclusive is 1 if it includes the lane's own value,
// and 0 otherwise.
func prefix(f func(a, b uint64) uint64, start uint64, inclusive int) simdFunction {
	return func(v []uint64, lane, _ int) uint64 {
		r := start
		for _, x := range v[:lane+inclusive] {
			r = f(r, x)
		}
		return r
	}
}

// from returns a function that takes the value of lane source(lane, arg), or the lane's own if that lane does not
// exist.
func from(source func(lane, arg int) int) simdFunction {
	return func(v []uint64, lane, arg int) uint64 {
		if s := source(lane, arg); s >= 0 && s < len(v) {
			return v[s]
		}
		return v[lane]
	}
}

// quad restricts a function to the quadgroup of the lane.
func quad(f simdFunction) simdFunction {
	return func(v []uint64, lane, arg int) uint64 {
		q := lane &^ 3
		return f(v[q:min(q+4, len(v))], lane%4, arg%4)
	}
}

func filled(delta func(arg int) int, modulo int) simdFunction {
	return func(v []uint64, lane, arg int) uint64 {
		base := lane - lane%modulo
		s := lane%modulo + delta(arg)
		source := base + (s+modulo)%modulo
		if source >= len(v) {
			source = lane
		}
		if s >= 0 && s < modulo {
			return v[source]
		}
		return v[source] + 100
	}
}

func ballot(v []uint64, _, _ int) (mask uint64) {
	for i, x := range v {
		if x > 3 {
			mask |= 1 << i
		}
	}
	return mask
}

func TestSimdFunctions(t *testing.T) {
	add := func(a, b uint64) uint64 { return a + b }
	times := func(a, b uint64) uint64 { return a * b }
	lower := func(a, b uint64) uint64 { return min(a, b) }
	upper := func(a, b uint64) uint64 { return max(a, b) }
	up := func(lane, arg int) int { return lane - arg }
	down := func(lane, arg int) int { return lane + arg }
	functions := map[int]simdFunction{
		0: fold(add), 1: fold(times), 2: fold(lower), 3: fold(upper),
		4: prefix(add, 0, 1), 5: prefix(add, 0, 0), 6: prefix(times, 1, 1), 7: prefix(times, 1, 0),
		8:  from(func(_, arg int) int { return arg }),
		9:  from(func(int, int) int { return 0 }),
		10: from(func(lane, arg int) int { return (lane*7 + arg) % 32 }),
		11: from(func(lane, arg int) int { return lane ^ arg }),
		12: from(up), 13: from(down),
		14: from(func(lane, arg int) int { return (lane - arg + 32) % 32 }),
		15: from(func(lane, arg int) int { return (lane + arg) % 32 }),
		16: filled(func(arg int) int { return -arg }, 32), 17: filled(func(arg int) int { return arg }, 32),
		18: ballot,
		19: func(v []uint64, lane, _ int) uint64 {
			var r uint64
			if fold(lower)(v, 0, 0) > 0 {
				r++
			}
			if ballot(v, 0, 0) != 0 {
				r += 2
			}
			if lane == 0 {
				r += 4
			}
			return r
		},
		20: func(v []uint64, _, _ int) uint64 { return 1<<len(v) - 1 },
		21: quad(fold(add)), 22: quad(fold(upper)), 23: quad(prefix(add, 0, 0)),
		24: quad(from(func(_, arg int) int { return arg })),
		25: quad(from(func(lane, arg int) int { return lane ^ arg })),
		26: quad(from(func(lane, arg int) int { return (lane - arg + 4) % 4 })),
		27: quad(ballot),
		28: func(v []uint64, lane, arg int) uint64 {
			return filled(func(int) int { return -(arg % 8) }, 8)(v, lane, arg)
		},
		29: quad(from(down)), 30: quad(fold(lower)), 31: quad(fold(times)),
	}
	and := func(a, b uint64) uint64 { return a & b }
	integers := map[int]simdFunction{
		40: fold(and), 41: fold(func(a, b uint64) uint64 { return a | b }),
		42: fold(func(a, b uint64) uint64 { return a ^ b }), 43: quad(fold(and)),
	}
	withCompilers(t, source(t, "simd"), func(t *testing.T, l *Library) []Buffer {
		var results []Buffer
		for _, lanes := range []int{32, 20, 1} {
			x, v := make([]uint32, lanes), make([]uint64, lanes)
			for i := range x {
				x[i] = uint32(i*5%9 + 1)
				v[i] = uint64(x[i])
			}
			for _, arg := range []int{0, 1, 3, 17, 31} {
				for mode, f := range functions {
					y, yf := runSimd(t, l, mode, arg, lanes, x)
					for i := range y {
						want := f(v, i, arg)
						require.Equal(t, uint32(want), y[i], "function %d(%d) of lane %d among %d", mode, arg, i, lanes)
						// Products round, and a mask of 32 lanes exceeds a float's 24 significant bits.
						require.InEpsilon(t, float64(want)+1, float64(yf[i])+1, 1e-5, "function %d(%d) of lane %d among %d, float", mode, arg, i, lanes)
					}
				}
				for mode := range len(functions) {
					y, yf := runSimd(t, l, mode, arg, lanes, x)
					results = append(results, raw(y), raw(yf))
				}
			}
			for i := range x {
				x[i] = math.MaxUint32 &^ (1 << (i % 32)) &^ (uint32(i) << 8)
				v[i] = uint64(x[i])
			}
			for mode, f := range integers {
				y, _ := runSimd(t, l, mode, 0, lanes, x)
				for i := range y {
					require.Equal(t, uint32(f(v, i, 0)), y[i], "function %d of lane %d", mode, i)
				}
			}
		}
		return results
	})
}

// In divergent control flow a SIMD function sees only the lanes that execute the call.
func TestSimdDivergence(t *testing.T) {
	withCompilers(t, source(t, "simd"), func(t *testing.T, l *Library) []Buffer {
		const lanes = 32
		x := make([]uint32, lanes)
		for i := range x {
			x[i] = uint32(i + 1)
		}
		sum := func(keep func(i int) bool) (s uint32) {
			for i, v := range x {
				if keep(i) {
					s += v
				}
			}
			return s
		}
		y, _ := runSimd(t, l, 50, 0, lanes, x)
		for i := range y {
			want := uint32(31 + 32*1000) // the maximum of the even lanes
			if i%2 == 1 {
				want = sum(func(k int) bool { return k%2 == 1 }) + 32*1000
			}
			require.Equal(t, want, y[i], "branches, lane %d", i)
		}

		y, yf := runSimd(t, l, 51, 0, lanes, x)
		for i := range y {
			want := uint32(0)
			for k := range i%5 + 1 {
				in := 0
				for j := range lanes {
					if j%5 >= k {
						in++
					}
				}
				want = want*64 + uint32(in)
			}
			require.Equal(t, want, y[i], "loop, lane %d", i)
			require.Equal(t, float32(32), yf[i], "behind the loop, lane %d", i)
		}

		y, _ = runSimd(t, l, 52, 0, lanes, x)
		for i := range y {
			want := uint32(0)
			if i%4 != 0 {
				want = sum(func(k int) bool { return k%4 != 0 })
			}
			if i%4 >= 2 {
				want += 2 << 16
			}
			require.Equal(t, want, y[i], "ended lanes, lane %d", i)
		}

		y, _ = runSimd(t, l, 53, 0, lanes, x)
		for i := range y {
			require.Equal(t, sum(func(k int) bool { return k < 8 == (i < 8) }), y[i], "around a barrier, lane %d", i)
		}

		y, _ = runSimd(t, l, 54, 0, lanes, x)
		for i := range y {
			want := sum(func(k int) bool { return k%2 == i%2 })
			if i%2 == 0 {
				want &= 0xff
			}
			require.Equal(t, want, y[i], "types of two sizes, lane %d", i)
		}
		return nil
	})
}
