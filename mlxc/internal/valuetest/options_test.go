package valuetest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// optionTests compares operations with many options with float64 in Go. Each round draws new shapes, layouts and
// options. Elements are small integers, so most results are exact.
var optionTests = map[string]func(t *testing.T, r *rand.Rand){}

func TestRandomOptions(t *testing.T) {
	testdevice.CPUOnly(t, "compares with float64 in Go, with tolerances for MLX's CPU backend")
	rounds := 40
	if long.Enabled() {
		rounds = 10_000
	}
	for _, name := range slices.Sorted(maps.Keys(optionTests)) {
		t.Run(name, func(t *testing.T) {
			for round := range rounds {
				mlxc.WithScope(func() {
					defer func() {
						if t.Failed() {
							t.Logf("round %d", round)
						}
					}()
					optionTests[name](t, rand.New(rand.NewPCG(uint64(round), 1)))
				})
			}
		})
	}
}

// drawnShape returns a shape with random sizes from 1 to 5.
func drawnShape(r *rand.Rand, axes int) []int {
	shape := make([]int, axes)
	for i := range shape {
		shape[i] = 1 + r.IntN(5)
	}
	return shape
}

// drawn returns an array of random integers from −3 to 3 in one of several layouts.
func drawn(r *rand.Rand, shape ...int) *mlxc.Array {
	n := 1
	for _, k := range shape {
		n *= k
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.IntN(7) - 3)
	}
	if len(shape) == 0 {
		return mlxc.Scalar(v[0])
	}
	a := mlxc.FromSlice(v, shape...)
	switch layout := r.IntN(4); {
	case layout == 1 && len(shape) > 1:
		return columnMajor(a)
	case layout == 2:
		return strided(a)
	case layout == 3:
		return a.Flip(0).Contiguous().Index(mlxc.All.Step(-1))
	}
	return a
}

// drawnAxes returns count distinct axes of n in random order. Some are negative, counted from the end.
func drawnAxes(r *rand.Rand, n, count int) []int {
	axes := r.Perm(n)[:count]
	for i := range axes {
		if r.IntN(2) == 0 {
			axes[i] -= n
		}
	}
	return axes
}

// eachIndex calls f with the index of each element of an array of this shape, in row-major order. f must not keep at.
func eachIndex(shape []int, f func(at []int)) {
	at := make([]int, len(shape))
	n := 1
	for _, k := range shape {
		n *= k
	}
	for range n {
		f(at)
		for i := len(at) - 1; i >= 0; i-- {
			if at[i]++; at[i] < shape[i] {
				break
			}
			at[i] = 0
		}
	}
}

// flatIndex returns the row-major position of index at in an array that is broadcast to it: axes of size 1 repeat, and
// leading entries of at beyond the array's axes are ignored.
func flatIndex(shape, at []int) int {
	flat := 0
	at = at[len(at)-len(shape):]
	for i, k := range shape {
		flat *= k
		if k > 1 {
			flat += at[i]
		}
	}
	return flat
}

// normalized returns the axes with negative ones counted from the front.
func normalized(axes []int, n int) []int {
	out := slices.Clone(axes)
	for i := range out {
		out[i] = (out[i] + n) % n
	}
	return out
}
