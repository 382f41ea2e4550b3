package valuetest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// e2m1 holds the absolute values of 4-bit floats, by their lowest 3 bits.
var e2m1 = []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}

// e4m3 decodes an 8-bit float with 4 exponent bits and 3 mantissa bits. The format has no infinities.
func e4m3(b uint8) float64 {
	exponent, mantissa := int(b>>3&15), float64(b&7)
	v := math.Ldexp(8+mantissa, exponent-10)
	if exponent == 0 {
		v = math.Ldexp(mantissa, -9)
	}
	if b>>7 == 1 {
		return -v
	}
	return v
}

// unpacked returns the elements of the given number of bits in words, from the lowest bits on. An element may span two
// words.
func unpacked(words []uint32, bits int) []uint8 {
	var out []uint8
	for i := range len(words) * 32 / bits {
		at := i * bits
		v := uint64(words[at/32]) >> (at % 32)
		if at%32+bits > 32 {
			v |= uint64(words[at/32+1]) << (32 - at%32)
		}
		out = append(out, uint8(v&(1<<bits-1)))
	}
	return out
}

// decoded returns the matrix that q represents, by the definition of its mode.
func decoded(t testing.TB, q mlxc.Quantized) []float64 {
	t.Helper()
	words := read[uint32](t, q.Weight)
	var out []float64
	switch q.Mode {
	case mlxc.Affine:
		scales, biases := wide(t, q.Scales), wide(t, q.Biases)
		for i, e := range unpacked(words, q.Bits) {
			out = append(out, float64(e)*scales[i/q.GroupSize]+biases[i/q.GroupSize])
		}
	case mlxc.MXFP8:
		for i, e := range unpacked(words, 8) {
			out = append(out, e4m3(e)*math.Ldexp(1, int(read[uint8](t, q.Scales)[i/32])-127))
		}
	default:
		group := 32
		scale := func(b uint8) float64 { return math.Ldexp(1, int(b)-127) }
		if q.Mode == mlxc.NVFP4 {
			group, scale = 16, e4m3
		}
		scales := read[uint8](t, q.Scales)
		for i, e := range unpacked(words, 4) {
			v := e2m1[e&7] * scale(scales[i/group])
			if e > 7 {
				v = -v
			}
			out = append(out, v)
		}
	}
	return out
}

// quantizations maps names to configurations. off is the allowed error of an element, relative to the largest absolute
// value of its group.
var quantizations = map[string]struct {
	c   mlxc.QuantizeConfig
	off float64
}{
	"affine 2":    {mlxc.QuantizeConfig{Mode: mlxc.Affine, Bits: 2, GroupSize: 32}, 0.4},
	"affine 3":    {mlxc.QuantizeConfig{Mode: mlxc.Affine, Bits: 3, GroupSize: 64}, 0.2},
	"affine 4":    {mlxc.QuantizeConfig{Mode: mlxc.Affine, Bits: 4, GroupSize: 64}, 0.09},
	"affine 5":    {mlxc.QuantizeConfig{Mode: mlxc.Affine, Bits: 5, GroupSize: 32}, 0.045},
	"affine 6":    {mlxc.QuantizeConfig{Mode: mlxc.Affine, Bits: 6, GroupSize: 128}, 0.025},
	"affine 8":    {mlxc.QuantizeConfig{Mode: mlxc.Affine, Bits: 8, GroupSize: 128}, 0.006},
	"mxfp4":       {mlxc.QuantizeConfig{Mode: mlxc.MXFP4}, 0.34},
	"mxfp8":       {mlxc.QuantizeConfig{Mode: mlxc.MXFP8}, 0.13},
	"nvfp4":       {mlxc.QuantizeConfig{Mode: mlxc.NVFP4}, 0.2},
	"mxfp4 sizes": {mlxc.QuantizeConfig{Mode: mlxc.MXFP4, Bits: 4, GroupSize: 32}, 0.34},
}

func init() {
	value("mlx_quantize", func(t *testing.T) {
		a := normal(1, 3, 256)
		x := wide(t, a)
		for name, c := range quantizations {
			t.Run(name, func(t *testing.T) {
				for _, b := range []*mlxc.Array{a, columnMajor(a), strided(a)} {
					q := b.Quantize(c.c)
					require.NoError(t, q.Err())
					for i, got := range decoded(t, q) {
						largest := 0.0
						for _, v := range x[i/16*16 : i/16*16+16] {
							largest = max(largest, math.Abs(v))
						}
						if c.c.Mode != mlxc.NVFP4 {
							largest = 4 // a bound for groups of 32 or more elements
						}
						require.InDelta(t, x[i], got, c.off*largest, "element %d", i)
					}
				}
			})
		}
		// The zero config has 4 bits and groups of 64. The smallest and the largest element of a group are exact.
		q := mlxc.Arange(mlxc.Float32, 0, 64, 1).Reshape(1, 64).Quantize(mlxc.QuantizeConfig{})
		require.Equal(t, [][]int{{1, 8}, {1, 1}, {1, 1}}, [][]int{q.Weight.Shape(), q.Scales.Shape(), q.Biases.Shape()})
		near(t, []float64{63}, q.Scales.Abs().MulScalar(15), 1e-5)
		require.Nil(t, a.Quantize(mlxc.QuantizeConfig{Mode: mlxc.NVFP4}).Biases)
	})
	value("mlx_dequantize", func(t *testing.T) {
		a := normal(2, 2, 256)
		for name, c := range quantizations {
			t.Run(name, func(t *testing.T) {
				q := a.Quantize(c.c)
				want := decoded(t, q)
				near(t, want, q.Dequantize(mlxc.Float32), 1e-6)
				near(t, want, q.Dequantize(mlxc.BFloat16), 1e-2)
				require.Equal(t, mlxc.Float16, q.Dequantize(mlxc.Float16).DType())
			})
		}
		require.Equal(t, mlxc.Float32, a.Quantize(mlxc.QuantizeConfig{}).Dequantize(mlxc.Invalid).DType())
		require.Equal(t, mlxc.BFloat16,
			a.Quantize(mlxc.QuantizeConfig{Mode: mlxc.MXFP8}).Dequantize(mlxc.Invalid).DType())
	})
	value("mlx_quantized_matmul", func(t *testing.T) {
		for name, c := range quantizations {
			t.Run(name, func(t *testing.T) {
				x := normal(3, 2, 3, 256)
				q := normal(4, 128, 256).Quantize(c.c)
				w := q.Dequantize(mlxc.Float32)
				same(t, x.MatMul(w.Transpose()), x.QuantizedMatMul(q, true), 5e-5)
				same(t, x.MatMul(w.Transpose()), columnMajor(x).QuantizedMatMul(q, true), 5e-5)
				y := normal(5, 3, 128)
				same(t, y.MatMul(w), strided(y).QuantizedMatMul(q, false), 5e-5)
				half := y.AsType(mlxc.Float16)
				q = normal(4, 128, 256).AsType(mlxc.Float16).Quantize(c.c)
				require.Equal(t, mlxc.Float16, half.QuantizedMatMul(q, false).DType())
				want := half.AsType(mlxc.Float32).MatMul(q.Dequantize(mlxc.Float32))
				same(t, want, half.QuantizedMatMul(q, false), 0.25) // float16 has 11 significant bits
			})
		}
	})
	value("mlx_gather_qmm", func(t *testing.T) {
		for name, c := range quantizations {
			t.Run(name, func(t *testing.T) {
				x := normal(6, 2, 3, 128)
				q := normal(7, 4, 128, 128).Quantize(c.c)
				w := q.Dequantize(mlxc.Float32)
				ids := mlxc.MatMulIDs{Left: mlxc.FromSlice([]uint32{1, 0, 1}), Right: mlxc.FromSlice([]uint32{3, 0, 2})}
				left, right := x.Take(ids.Left, 0), w.Take(ids.Right, 0)
				same(t, left.MatMul(right.SwapAxes(1, 2)), x.GatherQMM(q, ids, true), 5e-5)
				same(t, left.MatMul(right), x.GatherQMM(q, ids, false), 5e-5)
				same(t, w, q.Dequantize(mlxc.Float64).AsType(mlxc.Float32), 1e-6)
				compiled := mlxc.Compile(func(a arrays) arrays {
					q := q
					q.Weight, q.Scales = a[1], a[2]
					return arrays{a[0].GatherQMM(q, ids, false)}
				})
				defer compiled.Close()
				out, err := compiled.Call(x, q.Weight, q.Scales)
				require.NoError(t, err)
				same(t, left.MatMul(right), out[0], 5e-5)
				same(t, x.MatMul(w.Take(mlxc.FromSlice([]int32{1, 2}), 0)),
					x.GatherQMM(q, mlxc.MatMulIDs{Right: mlxc.FromSlice([]uint32{1, 2}), Sorted: true}, false), 5e-5)
			})
		}
	})
	value("mlx_qqmm", func(t *testing.T) {
		for name, c := range quantizations {
			if c.c.Mode == mlxc.Affine {
				continue
			}
			t.Run(name, func(t *testing.T) {
				x, w := normal(8, 1, 128), normal(9, 5, 128)
				q := w.Quantize(c.c)
				// QQMatMul also quantizes x.
				want := x.Quantize(c.c).Dequantize(mlxc.Float32).MatMul(q.Dequantize(mlxc.Float32).Transpose())
				same(t, want, x.QQMatMul(q, nil), 1e-4)
			})
		}
	})
}

// On the CPU, products of float16 or bfloat16 with quantized matrices are computed in float32 and rounded once.
func TestQuantizedMatMulOfHalfPrecision(t *testing.T) {
	if mlxc.DefaultDevice() != mlxc.CPU {
		skip.Platform(t, "only MLX's CPU backend adds up float16 and bfloat16 in their own dtype")
	}
	for d, ulp := range map[mlxc.DType]float64{mlxc.Float16: 1.0 / (1 << 11), mlxc.BFloat16: 1.0 / (1 << 8)} {
		x := mlxc.RandomUniform(mlxc.RandomKey(1), 0.5, 1, d, 3, 1024)
		for _, mode := range []mlxc.QuantizeMode{mlxc.Affine, mlxc.MXFP8} {
			q := mlxc.RandomUniform(mlxc.RandomKey(2), 0.5, 1, d, 8, 1024).Quantize(mlxc.QuantizeConfig{Mode: mode})
			want := wide(t, x.AsType(mlxc.Float64).MatMul(q.Dequantize(mlxc.Float32).AsType(mlxc.Float64).Transpose()))
			for _, y := range []*mlxc.Array{x.QuantizedMatMul(q, true), x.GatherQMM(q, mlxc.MatMulIDs{}, true)} {
				require.Equal(t, d, y.DType())
				for i, got := range wide(t, y) {
					require.InEpsilon(t, want[i], got, 1.01*ulp, "%v %v", d, mode)
				}
			}
			grads, err := mlxc.Grad(func(a arrays) arrays {
				return arrays{a[0].QuantizedMatMul(q, true).Sum()}
			})(arrays{x})
			require.NoError(t, err)
			require.Equal(t, d, grads[0].DType())
		}
		wrong := x.QuantizedMatMul(mlxc.Ones(d, 8, 512).Quantize(mlxc.QuantizeConfig{}), true)
		require.ErrorContains(t, wrong.Err(), "quantized_matmul "+d.String()+"(3,1024)")
	}
}
