package valuetest

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func init() {
	optionTests["RMSNorm and LayerNorm"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
		n, eps := a.Dim(-1), 0.01+r.Float64()
		x := wide(t, a)
		var weight, bias *mlxc.Array
		w, b := slices.Repeat([]float64{1}, n), make([]float64, n)
		if r.IntN(2) == 0 {
			weight = drawn(r, n)
			w = wide(t, weight)
		}
		if r.IntN(2) == 0 {
			bias = drawn(r, n)
			b = wide(t, bias)
		}
		var rms, layer []float64
		for row := range slices.Chunk(x, n) {
			sum, squares := 0.0, 0.0
			for _, v := range row {
				sum += v
				squares += v * v
			}
			mean := sum / float64(n)
			for i, v := range row {
				rms = append(rms, v*w[i]/math.Sqrt(squares/float64(n)+eps))
				layer = append(layer, (v-mean)*w[i]/math.Sqrt(squares/float64(n)-mean*mean+eps)+b[i])
			}
		}
		near(t, rms, mlxc.RMSNorm(a, weight, float32(eps)), 1e-5)
		near(t, layer, mlxc.LayerNorm(a, weight, bias, float32(eps)), 1e-4)
	}
	optionTests["RoPE"] = func(t *testing.T, r *rand.Rand) {
		shape := [4]int{1 + r.IntN(3), 1 + r.IntN(3), 1 + r.IntN(6), 2 * (1 + r.IntN(6))}
		x := drawn(r, shape[:]...)
		c := mlxc.RoPEConfig{
			Dims: 2 * r.IntN(shape[3]/2+1), Traditional: r.IntN(2) == 0, Base: []float32{0, 100, 500}[r.IntN(3)],
			Scale: []float32{0, 0.5, 2}[r.IntN(3)], Offset: r.IntN(20),
		}
		dims, base, scale := c.Dims, float64(c.Base), float64(c.Scale)
		if dims == 0 {
			dims = shape[3]
		}
		if base == 0 {
			base = 10000
		}
		if scale == 0 {
			scale = 1
		}
		frequency := func(i int) float64 { return math.Pow(base, -2*float64(i)/float64(dims)) }
		if r.IntN(3) == 0 {
			each := make([]float32, dims/2)
			for i := range each {
				each[i] = float32(1 + r.IntN(9))
			}
			c.Base, c.Freqs = 0, mlxc.FromSlice(each)
			frequency = func(i int) float64 { return 1 / float64(each[i]) }
		}
		want := func(offset func(int) int) []float64 {
			return rotated(wide(t, x), shape, dims, c.Traditional, scale, offset, frequency)
		}
		near(t, want(func(int) int { return c.Offset }), mlxc.RoPE(x, c), 1e-4)
		offsets := make([]int32, shape[0])
		for i := range offsets {
			offsets[i] = int32(r.IntN(20))
		}
		c.Offset = 0
		near(t, want(func(batch int) int { return int(offsets[batch]) }),
			mlxc.RoPEDynamic(x, mlxc.FromSlice(offsets), c), 1e-4)
	}
	optionTests["ScaledDotProductAttention"] = func(t *testing.T, r *rand.Rand) {
		batch, kvHeads, queries, dim, valueDim := 1+r.IntN(2), 1+r.IntN(2), 1+r.IntN(5), 1+r.IntN(9), 1+r.IntN(9)
		heads, keys := kvHeads*(1+r.IntN(3)), queries+r.IntN(4)
		q, k, v := drawn(r, batch, heads, queries, dim), drawn(r, batch, kvHeads, keys, dim), drawn(r, batch, kvHeads,
			keys, valueDim)
		c := mlxc.AttentionConfig{Scale: []float32{0, 0.3}[r.IntN(2)]}
		scale := float64(c.Scale)
		if scale == 0 {
			scale = 1 / math.Sqrt(float64(dim))
		}
		hide := func(_, _, _ int) float64 { return 0 }
		switch r.IntN(4) {
		case 0:
			c.Causal = true
			hide = func(_, query, key int) float64 {
				if key > query+keys-queries {
					return math.Inf(-1)
				}
				return 0
			}
		case 1:
			shape := []int{[]int{1, heads}[r.IntN(2)], []int{1, queries}[r.IntN(2)], keys}
			c.Mask = drawn(r, shape...)
			m := wide(t, c.Mask)
			hide = func(head, query, key int) float64 { return m[flatIndex(shape, []int{head, query, key})] }
		case 2:
			shape := []int{queries, keys}
			// The first key is visible to each query, so no row is fully masked.
			c.Mask = drawn(r,
				shape...).Greater(mlxc.Scalar[float32](0)).LogicalOr(mlxc.Arange(mlxc.Float32, 0, float64(keys),
				1).Equal(mlxc.Scalar[float32](0)))
			m := wide(t, c.Mask)
			hide = func(_, query, key int) float64 {
				if m[flatIndex(shape, []int{query, key})] == 0 {
					return math.Inf(-1)
				}
				return 0
			}
		}
		var sinks []float32
		if r.IntN(3) == 0 {
			c.Sinks = drawn(r, heads)
			sinks = floats(t, c.Sinks)
		}
		want := attention(floats(t, q), floats(t, k), floats(t, v), batch, heads, kvHeads, queries, keys, dim,
			valueDim, scale, hide, sinks)
		near(t, want, mlxc.ScaledDotProductAttention(q, k, v, c), 1e-4)
	}
	optionTests["QuantizedMatMul"] = func(t *testing.T, r *rand.Rand) {
		names := slices.Sorted(maps.Keys(quantizations))
		c := quantizations[names[r.IntN(len(names))]].c
		rows, columns, batch := 32*(1+r.IntN(2)), 128, 1+r.IntN(3)
		q := normal(r.Uint64(), rows, columns).Quantize(c)
		w := decoded(t, q)
		x, y := drawn(r, batch, columns), drawn(r, batch, rows)
		turned := make([]float64, len(w))
		for i := range rows {
			for k := range columns {
				turned[k*rows+i] = w[i*columns+k]
			}
		}
		near(t, product(wide(t, x), turned, batch, columns, rows), x.QuantizedMatMul(q, true), 1e-4)
		near(t, product(wide(t, y), w, batch, rows, columns), y.QuantizedMatMul(q, false), 1e-4)
	}
}
