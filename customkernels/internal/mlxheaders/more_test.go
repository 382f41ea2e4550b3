package mlxheaders

import (
	"math"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// mlxMore returns the cases of quantized matrices, Fourier transforms and indexing along an axis, and of kernels that
// are only compiled.
func (c *corpus) mlxMore() []headerCase {
	quantized := []string{"steel/gemm/gemm.h", "quantized_utils.h"}
	// 256 = 4·8·8, with eight elements for each thread.
	stockham := map[string]string{"is_power_of_2_": "true", "elems_per_thread_": "8", "radix_4_steps_": "1", "radix_8_steps_": "2"}
	return []headerCase{
		{"quantized.h", quantized, "affine_qmv", "{T}, 32, 4, false, " + sinceNewer("false, ") + "false, 4", mlxtest.FloatDTypes, nil, c.affineQMV},
		{"quantized.h", quantized, "affine_dequantize", "{T}, 32, 4, false", onlyFloat32, nil, c.affineDequantize},
		{"quantized.h", quantized, "affine_qmm_t", "{T}, 32, 4, true, false, " + sinceNewer("false, ") + "32, 32, 32", onlyFloat32, nil, nil},
		{"fp_quantized.h", []string{"steel/gemm/gemm.h", "quantized_utils.h", "fp4.h", "fp8.h"}, "fp_qmv", "{T}, 32, 4, false, " + sinceNewer("false, ") + "false, 4", onlyFloat32, nil, nil},
		{"gemv_masked.h", nil, "gemv_masked", "{T}, bool, bool, 4, 1, 1, 32, 4, 4, false", onlyFloat32, nil, nil},
		{"indexing/masked_scatter.h", []string{"reduce_utils.h"}, "masked_assign_impl", "{T}, true", onlyFloat32, nil, nil},
		{"steel/conv/kernels/steel_conv.h", []string{"steel/conv/conv.h"}, "implicit_gemm_conv_2d", "{T}, 32, 32, 16, 2, 2, 1, true", onlyFloat32, nil, nil},
		{"fft.h", nil, "fft", "256, float2, float2", onlyFloat32, stockham, c.mlxFFT},
		{"indexing/gather_axis.h", nil, "gather_axis", "{T}, int32_t, int, true, true", onlyFloat32, nil, c.gatherAxis},
		{"indexing/scatter.h", []string{"binary_ops.h", "reduce_utils.h"}, "slice_update_op_impl", "{T}, int, Add, true, true, false, 1, 1", onlyFloat32, nil, c.sliceUpdate},
		{"indexing/scatter_axis.h", []string{"reduce_utils.h"}, "scatter_axis", "{T}, int32_t, int, Sum<{T}>, true, true", onlyFloat32, nil, c.scatterAxis},
	}
}

// quantizedMatrix returns random 4-bit codes with their scales and biases, and w, the dequantized matrix.
func (c *corpus) quantizedMatrix(d mlxc.DType, rows, columns int) (codes, scales, biases *mlxc.Array, w []float64) {
	words := make([]uint32, rows*columns/8)
	for i := range words {
		words[i] = c.Random.Uint32()
	}
	scales, s := c.Uniform(d, 0.01, 0.1, rows, columns/32)
	biases, b := c.Normal(d, rows, columns/32)
	w = make([]float64, rows*columns)
	for i := range w {
		w[i] = s[i/32]*float64(words[i/8]>>(4*(i%8))&15) + b[i/32]
	}
	return mlxc.FromSlice(words, rows, columns/8), scales, biases, w
}

func (c *corpus) affineQMV(d mlxc.DType) headerLaunch {
	const in, out = 544, 45
	codes, scales, biases, w := c.quantizedMatrix(d, out, in)
	x, v := c.Normal(d, 1, in)
	return headerLaunch{
		grid: [3]int{32, 2 * ((out + 7) / 8), 1}, threadgroup: [3]int{32, 2, 1},
		arguments: []any{
			codes, scales, biases, x,
			result{dtype: d, shape: []int{1, out}},
			int32(in), int32(out),
			int32(0), nil, nil, int32(0), nil, nil, nil, nil,
		},
		check: func(t testing.TB, got arrays) {
			// Terms are at most 0.1·15·4. MLX multiplies the biases by a sum of x, which it accumulates in the dtype,
			// four elements at a time.
			b := mlxtest.Rounded(d, 2*in, 20)
			b.Absolute += 64 * mlxtest.Roundoff(d)
			mlxtest.RequireNear(t, mlxtest.MatMul(v, w, 1, out, in, true), got[0], b)
		},
	}
}

func (c *corpus) affineDequantize(d mlxc.DType) headerLaunch {
	const rows, columns = 5, 96
	codes, scales, biases, w := c.quantizedMatrix(d, rows, columns)
	return headerLaunch{
		grid: [3]int{rows * columns / 2, 1, 1}, threadgroup: [3]int{64, 1, 1},
		arguments: []any{codes, scales, biases, result{dtype: d, shape: []int{rows, columns}}},
		check: func(t testing.TB, got arrays) {
			mlxtest.RequireNear(t, w, got[0], mlxtest.Rounded(d, 2, 4))
		},
	}
}

func (c *corpus) mlxFFT(d mlxc.DType) headerLaunch {
	const rows, n = 3, 256
	x, v := c.Normal(d, rows, n, 2)
	return headerLaunch{
		grid: [3]int{rows, 1, n / 8}, threadgroup: [3]int{1, 1, n / 8},
		arguments: []any{x, result{dtype: d, shape: []int{rows, n, 2}}, int32(n), int32(rows)},
		check: func(t testing.TB, got arrays) {
			mlxtest.RequireNear(t, mlxtest.ByRow(v, 2*n, mlxtest.Fourier), got[0], mlxtest.Rounded(d, 8*8, 4*math.Sqrt(n)))
		},
	}
}

// axisArguments returns the arguments of gather_axis and scatter_axis that follow the arrays, for the middle axis of
// contiguous arrays.
func axisArguments(axis, after int) []any {
	return []any{[]int32{1}, []int64{0}, []int64{0}, uint64(1), int32(1), int32(axis), uint64(after), uint64(after)}
}

// axisIndices returns random indices into an axis, distinct along it. Some are negative and count from the end. at
// holds the same indices, all non-negative.
func (c *corpus) axisIndices(before, count, after, axis int) (a *mlxc.Array, at []int) {
	v := make([]int32, before*count*after)
	at = make([]int, len(v))
	for i := range before * after {
		for j, place := range c.Random.Perm(axis)[:count] {
			where := i/after*count*after + j*after + i%after
			at[where] = place
			v[where] = int32(place - j%2*axis)
		}
	}
	return mlxc.FromSlice(v, before, count, after), at
}

func (c *corpus) gatherAxis(d mlxc.DType) headerLaunch {
	const before, axis, count, after = 3, 11, 5, 7
	x, v := c.Normal(d, before, axis, after)
	index, at := c.axisIndices(before, count, after, axis)
	return headerLaunch{
		grid: [3]int{after, count, before}, threadgroup: [3]int{4, 4, 2},
		arguments: append([]any{x, index, result{dtype: d, shape: []int{before, count, after}}}, axisArguments(axis, after)...),
		check: func(t testing.TB, got arrays) {
			want := make([]float64, len(at))
			for i := range want {
				want[i] = v[(i/(count*after)*axis+at[i])*after+i%after]
			}
			mlxtest.RequireNear(t, want, got[0], mlxtest.Bound{})
		},
	}
}

// sliceUpdate adds x to the elements from index 7 on.
func (c *corpus) sliceUpdate(d mlxc.DType) headerLaunch {
	const size, offset = 45, 7
	x, v := c.Normal(d, size)
	return headerLaunch{
		grid: [3]int{size, 1, 1}, threadgroup: [3]int{32, 1, 1},
		arguments: []any{
			x,
			result{dtype: d, shape: []int{offset + size}, zero: true},
			[]int32{size},
			[]int64{1},
			int32(1), int64(size),
			[]int64{1},
			int64(offset),
		},
		check: func(t testing.TB, got arrays) {
			mlxtest.RequireNear(t, append(make([]float64, offset), v...), got[0], mlxtest.Bound{})
		},
	}
}

func (c *corpus) scatterAxis(d mlxc.DType) headerLaunch {
	const before, axis, count, after = 3, 11, 5, 7
	x, v := c.Normal(d, before, count, after)
	index, at := c.axisIndices(before, count, after, axis)
	return headerLaunch{
		grid: [3]int{after, count, before}, threadgroup: [3]int{4, 4, 2},
		arguments: append([]any{x, index, result{dtype: d, shape: []int{before, axis, after}, zero: true}}, axisArguments(axis, after)...),
		check: func(t testing.TB, got arrays) {
			want := make([]float64, before*axis*after)
			for i, x := range v {
				want[(i/(count*after)*axis+at[i])*after+i%after] += x
			}
			mlxtest.RequireNear(t, want, got[0], mlxtest.Bound{})
		},
	}
}
