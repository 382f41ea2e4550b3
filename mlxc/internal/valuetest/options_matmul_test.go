package valuetest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

func init() {
	optionTests["MatMul"] = func(t *testing.T, r *rand.Rand) {
		batch := drawnShape(r, r.IntN(3))
		part := func(rows, columns int) *mlxc.Array {
			own := slices.Clone(batch[r.IntN(len(batch)+1):])
			for i := range own {
				if r.IntN(2) == 0 {
					own[i] = 1
				}
			}
			return drawn(r, append(own, rows, columns)...)
		}
		m, k, n := 1+r.IntN(5), 1+r.IntN(5), 1+r.IntN(5)
		a, b := part(m, k), part(k, n)
		x, y := wide(t, a), wide(t, b)
		got := a.MatMul(b)
		var want []float64
		eachIndex(got.Shape(), func(at []int) {
			sum, axes := 0.0, len(at)
			for i := range k {
				sum += x[flatIndex(a.Shape(), slices.Concat(at[:axes-1], []int{i}))] *
					y[flatIndex(b.Shape(), slices.Concat(at[:axes-2], []int{i, at[axes-1]}))]
			}
			want = append(want, sum)
		})
		near(t, want, got, 0)
		c := drawn(r, n)
		row := wide(t, c)
		for i := range want {
			want[i] = 2*want[i] - row[i%n]
		}
		near(t, want, c.AddMM(a, b, 2, -1), 0)
	}
	optionTests["Einsum and TensorDot"] = func(t *testing.T, r *rand.Rand) {
		const letters = "abcd"
		sizes := drawnShape(r, len(letters))
		var subscripts string
		var operands arrays
		var factors []func(at []int) float64
		used := ""
		for i := range 1 + r.IntN(3) {
			if i > 0 {
				subscripts += ","
			}
			own, shape := "", []int{}
			for range r.IntN(4) {
				k := r.IntN(len(letters))
				own += letters[k : k+1]
				shape = append(shape, sizes[k])
			}
			a := drawn(r, shape...)
			x := wide(t, a)
			operands = append(operands, a)
			factors = append(factors, func(at []int) float64 {
				place := make([]int, len(own))
				for i := range own {
					place[i] = at[own[i]-'a']
				}
				return x[flatIndex(shape, place)]
			})
			subscripts += own
			used += own
		}
		out, result := "", []int{}
		for _, k := range r.Perm(len(letters)) {
			if l := letters[k : k+1]; slices.Contains([]byte(used), l[0]) && r.IntN(2) == 0 {
				out += l
				result = append(result, sizes[k])
			}
		}
		n := 1
		for _, k := range result {
			n *= k
		}
		want := make([]float64, n)
		over := slices.Clone(sizes)
		for k := range over {
			if !slices.Contains([]byte(used), letters[k]) {
				over[k] = 1
			}
		}
		eachIndex(over, func(at []int) {
			product := 1.0
			for _, f := range factors {
				product *= f(at)
			}
			place := make([]int, len(out))
			for i := range out {
				place[i] = at[out[i]-'a']
			}
			want[flatIndex(result, place)] += product
		})
		got := mlxc.Einsum(subscripts+"->"+out, operands...)
		require.NoError(t, got.Err(), "%s->%s", subscripts, out)
		require.Equal(t, result, append([]int{}, got.Shape()...), "%s->%s", subscripts, out)
		near(t, want, got, 1e-6)

		a, b := drawn(r, 2, 3, 4), drawn(r, 4, 2, 3)
		x, y := wide(t, a), wide(t, b)
		want = make([]float64, 9)
		eachIndex([]int{3, 3, 2, 4}, func(at []int) {
			want[at[0]*3+at[1]] += x[flatIndex([]int{2, 3, 4},
				[]int{at[2], at[0], at[3]})] * y[flatIndex([]int{4, 2, 3}, []int{at[3], at[2], at[1]})]
		})
		near(t, want, a.TensorDot(b, []int{0 - 3*r.IntN(2), 2 - 3*r.IntN(2)}, []int{1 - 3*r.IntN(2), 0 - 3*r.IntN(2)}),
			0)
	}
	optionTests["ConvGeneral"] = func(t *testing.T, r *rand.Rand) {
		dims := 1 + r.IntN(3)
		list := func(least, most int) []int {
			if r.IntN(3) == 0 {
				return nil
			}
			out := make([]int, []int{1, dims}[r.IntN(2)])
			for i := range out {
				out[i] = least + r.IntN(most-least+1)
			}
			return out
		}
		c := mlxc.ConvGeneralConfig{
			Stride: list(1, 3), PaddingLow: list(0, 2), PaddingHigh: list(0, 2), Dilation: list(1,
				2), InputDilation: list(1, 2), Flip: r.IntN(2) == 0,
		}
		if dims < 3 {
			c.Groups = []int{0, 1, 2}[r.IntN(3)]
		}
		groups := max(c.Groups, 1)
		channels := groups * (1 + r.IntN(3))
		input, weight := []int{1 + r.IntN(2)}, []int{groups * (1 + r.IntN(3))}
		for range dims {
			input, weight = append(input, 5+r.IntN(3)), append(weight, 1+r.IntN(3))
		}
		x, w := drawn(r, append(input, channels)...), drawn(r, append(weight, channels/groups)...)
		want := correlate(gridOf(t, x), gridOf(t, w), convolution{
			entries(c.Stride, dims, 1), entries(c.PaddingLow, dims, 0), entries(c.PaddingHigh, dims,
				0), entries(c.Dilation, dims, 1),
			entries(c.InputDilation, dims, 1), groups, c.Flip,
		})
		requireGrid(t, want, mlxc.ConvGeneral(x, w, c))
	}
}
