package valuetest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func init() {
	// source returns the operand's index for position i of a padded axis, or −1 for the padding value. n is the axis's
	// size without padding, and position 0 the first of its elements.
	for name, c := range map[string]struct {
		pad    func(a *mlxc.Array, p ...mlxc.Padding) *mlxc.Array
		source func(i, n int) int
	}{
		"Pad": {
			func(a *mlxc.Array, p ...mlxc.Padding) *mlxc.Array { return a.Pad(mlxc.Scalar[float32](9), p...) },
			func(i, n int) int {
				if i < 0 || i >= n {
					return -1
				}
				return i
			},
		},
		"PadEdge": {(*mlxc.Array).PadEdge, func(i, n int) int { return min(max(i, 0), n-1) }},
		"PadReflect": {(*mlxc.Array).PadReflect, func(i, n int) int {
			for i < 0 || i >= n {
				switch {
				case n == 1:
					return 0
				case i < 0:
					i = -i
				default:
					i = 2*(n-1) - i
				}
			}
			return i
		}},
		"PadSymmetric": {(*mlxc.Array).PadSymmetric, func(i, n int) int {
			for i < 0 || i >= n {
				if i < 0 {
					i = -1 - i
				} else {
					i = 2*n - 1 - i
				}
			}
			return i
		}},
	} {
		optionTests["padding "+name] = func(t *testing.T, r *rand.Rand) {
			a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
			shape, x := a.Shape(), wide(t, a)
			before, padded := make([]int, len(shape)), slices.Clone(shape)
			var padding []mlxc.Padding
			for range r.IntN(4) {
				p := mlxc.Padding{Axis: drawnAxes(r, len(shape), 1)[0], Before: r.IntN(7), After: r.IntN(7)}
				padding = append(padding, p)
				axis := (p.Axis + len(shape)) % len(shape)
				before[axis] += p.Before
				padded[axis] += p.Before + p.After
			}
			var want []float64
			eachIndex(padded, func(at []int) {
				from, inside := make([]int, len(at)), true
				for i, k := range at {
					from[i] = c.source(k-before[i], shape[i])
					inside = inside && from[i] >= 0
				}
				if !inside {
					want = append(want, 9)
					return
				}
				want = append(want, x[flatIndex(shape, from)])
			})
			requireArray(t, padded, want, c.pad(a, padding...))
		}
	}
	optionTests["Slice"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
		shape, x := a.Shape(), wide(t, a)
		var start, stop, strides, sizes []int
		var chosen [][]int
		for _, n := range shape {
			from, to, step := r.IntN(2*n+3)-n-1, r.IntN(2*n+3)-n-1, 1+r.IntN(3)
			start, stop, strides = append(start, from), append(stop, to), append(strides, step)
			clip := func(k int) int {
				if k < 0 {
					k += n
				}
				return min(max(k, 0), n)
			}
			taken := []int{}
			for k := clip(from); k < clip(to); k += step {
				taken = append(taken, k)
			}
			chosen, sizes = append(chosen, taken), append(sizes, len(taken))
		}
		want, updated := []float64{}, slices.Clone(x)
		eachIndex(sizes, func(at []int) {
			from := make([]int, len(at))
			for i, k := range at {
				from[i] = chosen[i][k]
			}
			want = append(want, x[flatIndex(shape, from)])
			updated[flatIndex(shape, from)] = 7
		})
		requireArray(t, sizes, want, a.Slice(start, stop, strides))
		requireArray(t, shape, updated, a.SliceUpdate(mlxc.Scalar[float32](7), start, stop, strides))
	}
	optionTests["Index"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(4))...)
		s, x := randomSelection(r, a.Shape(), true), wide(t, a)
		want := []float64{}
		for _, p := range s.positions {
			want = append(want, x[p])
		}
		requireArray(t, append([]int{}, s.shape...), want, a.Index(s.at...))
	}
	optionTests["Roll, Repeat, Tile"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
		shape, x := a.Shape(), wide(t, a)
		axis, n := drawnAxes(r, len(shape), 1)[0], r.IntN(9)-4
		k := (axis + len(shape)) % len(shape)
		moved := func(result []int, from func(at []int)) (want []float64) {
			eachIndex(result, func(at []int) {
				at = slices.Clone(at)
				from(at)
				want = append(want, x[flatIndex(shape, at)])
			})
			return want
		}
		requireArray(t, shape, moved(shape, func(at []int) { at[k] = ((at[k]-n)%shape[k] + shape[k]) % shape[k] }),
			a.Roll(n, axis))
		times, longer := 1+r.IntN(3), slices.Clone(shape)
		longer[k] *= times
		requireArray(t, longer, moved(longer, func(at []int) { at[k] /= times }), a.Repeat(times, axis))
		reps, tiled := drawnShape(r, len(shape)), slices.Clone(shape)
		for i := range reps {
			tiled[i] *= reps[i]
		}
		requireArray(t, tiled, moved(tiled, func(at []int) {
			for i := range at {
				at[i] %= shape[i]
			}
		}), a.Tile(reps...))
	}
}
