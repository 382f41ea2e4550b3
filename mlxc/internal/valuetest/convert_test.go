package valuetest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func init() {
	value("mlx_astype", func(t *testing.T) {
		x := []int8{0, 1, 2, 100}
		for _, from := range mlxc.DTypes() {
			a := mlxc.FromSlice(x, 2, 2).AsType(from).Transpose()
			want := []int8{0, 2, 1, 100}
			if from == mlxc.Bool {
				want = []int8{0, 1, 1, 1}
			}
			for _, to := range mlxc.DTypes() {
				b := a.AsType(to)
				require.Equal(t, to, b.DType())
				if to == mlxc.Bool {
					require.Equal(t, []bool{false, true, true, true}, read[bool](t, b))
					continue
				}
				require.Equal(t, want, read[int8](t, b.AsType(mlxc.Int8)), "%v to %v", from, to)
			}
		}
		require.Equal(t, []int32{1, -1}, read[int32](t, mlxc.FromSlice([]float32{1.9, -1.9}).AsType(mlxc.Int32)))
		require.Equal(t, []float32{1 + 1.0/128, 2},
			floats(t, mlxc.FromSlice([]float32{1.0078, 2.001}).AsType(mlxc.BFloat16).AsType(mlxc.Float32)))
		require.Equal(t, []bool{true}, read[bool](t, mlxc.Scalar(float32(math.NaN())).AsType(mlxc.Bool)))
	})
	value("mlx_view", func(t *testing.T) {
		require.Equal(t, []uint32{math.Float32bits(1), math.Float32bits(-2)},
			read[uint32](t, mlxc.FromSlice([]float32{1, -2}).View(mlxc.Uint32)))
		bytes := mlxc.FromSlice([]uint8{1, 2, 3, 4, 5, 6, 7, 8}, 2, 4)
		wider := bytes.View(mlxc.Uint16)
		require.Equal(t, []int{2, 2}, wider.Shape())
		require.Equal(t, []uint16{0x0201, 0x0403, 0x0605, 0x0807}, read[uint16](t, wider))
		require.Equal(t, []uint8{1, 2, 3, 4, 5, 6, 7, 8}, read[uint8](t, wider.View(mlxc.Uint8)))
		// An array that is not contiguous, and a scalar.
		columns := bytes.Transpose()
		require.Equal(t, []uint16{0x0501, 0x0602, 0x0703, 0x0804}, read[uint16](t, columns.View(mlxc.Uint16)))
		require.Equal(t, []uint32{0x3f800000}, read[uint32](t, mlxc.Scalar[float32](1).View(mlxc.Uint32)))
	})
	// fp8 decodes an 8-bit float by the definition of e4m3: 1 sign bit, 4 exponent bits and 3 fraction bits. If all
	// bits of exponent and fraction are set, the number is NaN.
	fp8 := func(code int) float64 {
		sign := 1.0
		if code >= 128 {
			sign = -1
		}
		exponent, fraction := code>>3&15, float64(code&7)/8
		switch {
		case code&127 == 127:
			return math.NaN()
		case exponent == 0:
			return sign * math.Ldexp(fraction, -6)
		}
		return sign * math.Ldexp(1+fraction, exponent-7)
	}
	value("mlx_from_fp8", func(t *testing.T) {
		codes := mlxc.Arange(mlxc.Uint8, 0, 256, 1)
		for d := range floatDTypes {
			got := codes.FromFP8(d)
			require.Equal(t, d, got.DType())
			for i, v := range wide(t, got) {
				if i&127 == 127 {
					continue // a code of NaN, which ToFP8 never returns
				}
				require.InDelta(t, fp8(i), v, 0, "%v %#x", d, i)
			}
		}
	})
	value("mlx_to_fp8", func(t *testing.T) {
		for code := range 256 {
			if code&127 == 127 || code == 128 {
				continue
			}
			for d := range floatDTypes {
				got := mlxc.Scalar(fp8(code)).AsType(d).ToFP8()
				require.Equal(t, []uint8{uint8(code)}, read[uint8](t, got), "%v %g", d, fp8(code))
			}
		}
		// Values between two numbers round to the nearest. Values beyond the range, and NaN, become ±448.
		x := mlxc.FromSlice([]float32{1.05, 1.08, -17.9, 449, -1e9, float32(math.Inf(1)), 0.0001, float32(math.NaN())})
		require.Equal(t, []float32{1, 1.125, -18, 448, -448, 448, 0, 448}, floats(t, x.ToFP8().FromFP8(mlxc.Float32)))
	})
	z := mlxc.FromSlice([]complex64{1 + 2i, -3 - 4i, 5i, 6}, 2, 2).Transpose()
	value("mlx_real", func(t *testing.T) {
		require.Equal(t, []float32{1, 0, -3, 6}, floats(t, z.Real()))
		require.Equal(t, []int32{7}, read[int32](t, mlxc.FromSlice([]int32{7}).Real()))
	})
	value("mlx_imag", func(t *testing.T) {
		require.Equal(t, []float32{2, 5, -4, 0}, floats(t, z.Imag()))
		require.Equal(t, []int32{0}, read[int32](t, mlxc.FromSlice([]int32{7}).Imag()))
	})
	value("mlx_conjugate", func(t *testing.T) {
		require.Equal(t, []complex64{1 - 2i, -5i, -3 + 4i, 6}, read[complex64](t, z.Conjugate()))
		require.Equal(t, []float32{7}, floats(t, mlxc.FromSlice([]float32{7}).Conjugate()))
	})
	value("mlx_stop_gradient", func(t *testing.T) {
		x := mlxc.FromSlice([]float32{1, 2, 3})
		outs, grads, err := mlxc.VJP(single(func(a *mlxc.Array) *mlxc.Array { return a.StopGradient().Mul(a) }),
			arrays{x}, arrays{mlxc.Ones(mlxc.Float32, 3)})
		require.NoError(t, err)
		require.Equal(t, []float32{1, 4, 9}, floats(t, outs[0]))
		require.Equal(t, []float32{1, 2, 3}, floats(t, grads[0]), "one of the factors is a constant")
	})
	value("mlx_depends", func(t *testing.T) {
		x, y := mlxc.FromSlice([]float32{1, 2, 3}), counting(2).Square()
		require.Equal(t, []float32{1, 2, 3}, floats(t, x.After(y)))
		require.True(t, y.IsReady())
	})
	value("mlx_contiguous", func(t *testing.T) {
		x := counting(2, 3).Transpose()
		require.Equal(t, []float32{0, 3, 1, 4, 2, 5}, floats(t, x.Contiguous()))
	})
}
