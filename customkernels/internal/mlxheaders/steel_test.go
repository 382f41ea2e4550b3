package mlxheaders

import (
	"math"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// mlxTiles returns the cases of tiled kernels, with tiles in threadgroup memory and simdgroup matrices.
func (c *corpus) mlxTiles() []headerCase {
	halves := []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16}
	causal := map[string]string{"do_causal": "true"}
	split := map[string]string{"blocks": "8"}
	return []headerCase{
		{"steel/gemm/kernels/steel_gemm_fused.h", []string{"steel/gemm/gemm.h"}, "gemm", "{T}, 32, 32, 16, 2, 2, false, false, float", halves, nil, func(d mlxc.DType) headerLaunch { return c.steelGEMM(d, false) }},
		{"steel/gemm/kernels/steel_gemm_fused.h", []string{"steel/gemm/gemm.h"}, "gemm", "{T}, 64, 32, 16, 2, 2, false, true, float", onlyFloat32, nil, func(d mlxc.DType) headerLaunch { return c.steelGEMM(d, true) }},
		{"steel/attn/kernels/steel_attention.h", []string{"steel/attn/attn.h"}, "attention", "{T}, 32, 16, 64, " + sinceNewer("64, ") + "4, 1, float, float", halves, nil, func(d mlxc.DType) headerLaunch { return c.steelAttention(d, false) }},
		{"steel/attn/kernels/steel_attention.h", []string{"steel/attn/attn.h"}, "attention", "{T}, 32, 16, 64, " + sinceNewer("64, ") + "4, 1, float, float", onlyFloat32, causal, func(d mlxc.DType) headerLaunch { return c.steelAttention(d, true) }},
		{"steel/gemm/kernels/steel_gemm_splitk.h", []string{"steel/gemm/gemm.h"}, "gemm_splitk_accum", "float, {T}, mlx::steel::TransformNone<{T}, float>", halves, nil, c.splitKSum},
		{"steel/gemm/kernels/steel_gemm_splitk.h", []string{"steel/gemm/gemm.h"}, "gemm_splitk", "{T}, float, 16, 16, 16, 2, 2, false, false, false, false", onlyFloat32, nil, nil},
		{"steel/gemm/kernels/steel_gemm_gather.h", []string{"steel/gemm/gemm.h"}, "gather_mm", "{T}, 32, 32, 16, 2, 2, false, false, float", onlyFloat32, nil, nil},
		{"steel/gemm/kernels/steel_gemm_segmented.h", []string{"steel/gemm/gemm.h"}, "segmented_mm", "{T}, 32, 32, 16, 2, 2, false, false, float", onlyFloat32, nil, nil},
		{"steel/gemm/kernels/steel_gemm_masked.h", []string{"steel/gemm/gemm.h"}, "block_masked_gemm", "{T}, 32, 32, 16, 2, 2, false, false, false, false, false", onlyFloat32, nil, nil},
		{"steel/conv/kernels/steel_conv_general.h", []string{"steel/conv/conv.h"}, "implicit_gemm_conv_2d_general", "{T}, 32, 32, 16, 2, 2, float, mlx::steel::TransformNone<{T}, float>", onlyFloat32, nil, nil},
		{"steel/conv/kernels/steel_conv_3d.h", []string{"steel/conv/conv.h"}, "implicit_gemm_conv_3d", "{T}, 32, 32, 16, 2, 2, false", onlyFloat32, nil, nil},
		{"sdpa_vector.h", nil, "sdpa_vector_2pass_1", "{T}, 64, 64" + sinceNewer(", 4"), onlyFloat32, split, c.sdpaTwoPass},
	}
}

// wide returns 64-bit numbers as pairs of int32, low half first, for a structure that is passed as a slice of int32.
func wide(numbers ...int) []int32 {
	var words []int32
	for _, n := range numbers {
		words = append(words, int32(uint32(n)), int32(n>>32))
	}
	return words
}

// steelGEMM is A·B, or A·Bᵀ, with sizes that are no multiples of the tile.
func (c *corpus) steelGEMM(d mlxc.DType, transposed bool) headerLaunch {
	const m, n, k, bn, bk = 77, 45, 53, 32, 16
	bm := 32
	if transposed {
		bm = 64
	}
	a, x := c.Normal(d, m, k)
	b, y := c.Normal(d, k, n)
	ldb := n
	if transposed {
		b, y = c.Normal(d, n, k)
		ldb = k
	}
	columns, rows := (n+bn-1)/bn, (m+bm-1)/bm
	params := []int32{m, n, k, k, int32(ldb), n, int32(columns), int32(rows)}
	params = append(params, wide(0, 0, 0)...)
	params = append(params, 0, k/bk, 1, 0)
	return headerLaunch{
		grid: [3]int{32 * columns, 2 * rows, 2}, threadgroup: [3]int{32, 2, 2},
		arguments: []any{a, b, nil, result{dtype: d, shape: []int{m, n}}, params, nil, nil, nil},
		check: func(t testing.TB, got arrays) {
			mlxtest.RequireNear(t, mlxtest.MatMul(x, y, m, n, k, transposed), got[0], mlxtest.ProductBound(d, k))
		},
	}
}

// splitKSum is the kernel of a split-K product that sums the partial products.
func (c *corpus) splitKSum(d mlxc.DType) headerLaunch {
	const parts, m, n = 5, 9, 13
	x, _ := c.Normal(mlxc.Float32, parts, m, n)
	return headerLaunch{
		grid: [3]int{n, m, 1}, threadgroup: [3]int{8, 4, 1},
		arguments: []any{x, result{dtype: d, shape: []int{m, n}}, int32(parts), int32(m * n), int32(n)},
		check: func(t testing.TB, got arrays) {
			mlxtest.RequireNear(t, mlxtest.Values(t, x.Sum(0)), got[0], mlxtest.Rounded(d, 2*parts, 8))
		},
	}
}

func (c *corpus) steelAttention(d mlxc.DType, causal bool) headerLaunch {
	const heads, groups, queries, keys, headDim, bq, bk = 4, 2, 45, 75, 64, 32, 16
	q, vq := c.Normal(d, heads, queries, headDim)
	k, vk := c.Normal(d, heads/groups, keys, headDim)
	v, vv := c.Normal(d, heads/groups, keys, headDim)
	scale := 1 / math.Sqrt(headDim)
	const blocks = (queries + bq - 1) / bq
	params := []int32{
		1, heads, headDim, queries, keys, groups, int32(math.Float32bits(float32(scale))),
		blocks, (keys + bk - 1) / bk, queries / bq, keys / bk, queries % bq, keys % bk, keys - queries,
	}
	for _, length := range []int{queries, keys, keys, queries} {
		params = append(params, wide(heads*length*headDim, length*headDim, headDim)...)
	}
	arguments := []any{q, k, v, result{dtype: d, shape: []int{heads, queries, headDim}}, params, nil, nil, nil}
	if mlxtest.AtLeast("0.32.4") {
		arguments = append(arguments, nil) // the logsumexp of each row, for the gradient
	}
	return headerLaunch{
		grid: [3]int{32 * blocks, 4 * heads, 1}, threadgroup: [3]int{32, 4, 1},
		arguments: arguments,
		check: func(t testing.TB, got arrays) {
			var want []float64
			for h := range heads {
				first := h / groups * keys * headDim
				for i := range queries {
					seen := keys
					if causal {
						seen = i + 1 + keys - queries
					}
					scores := mlxtest.MatMul(vq[(h*queries+i)*headDim:], vk[first:], 1, seen, headDim, true)
					for j := range scores {
						scores[j] *= scale
					}
					want = append(want, mlxtest.MatMul(mlxtest.Softmax(scores), vv[first:], 1, headDim, seen, false)...)
				}
			}
			// The scaled queries and the softmax weights are rounded to the dtype before the products, so each term has
			// two roundings.
			b := mlxtest.Rounded(d, 2*headDim+keys, 4)
			b.Absolute += 8 * mlxtest.Roundoff(d)
			mlxtest.RequireNear(t, want, got[0], b)
		},
	}
}

// sdpaTwoPass is the first pass of two-pass attention: each of 8 blocks computes partial sums over every eighth key.
// The check combines the blocks.
func (c *corpus) sdpaTwoPass(d mlxc.DType) headerLaunch {
	const heads, groups, queries, keys, headDim, blocks = 4, 2, 3, 101, 64, 8
	q, vq := c.Normal(d, heads, queries, headDim)
	k, vk := c.Normal(d, heads/groups, keys, headDim)
	v, vv := c.Normal(d, heads/groups, keys, headDim)
	scale := float32(1 / math.Sqrt(headDim))
	f := mlxc.Float32
	return headerLaunch{
		grid: [3]int{32 * heads / groups, groups, queries * blocks}, threadgroup: [3]int{32, groups, queries},
		arguments: []any{
			q, k, v,
			result{dtype: d, shape: []int{heads * queries, blocks, headDim}},
			result{dtype: f, shape: []int{heads * queries, blocks}},
			result{dtype: f, shape: []int{heads * queries, blocks}},
			nil,
			int32(keys), uint64(keys * headDim), uint64(headDim), uint64(keys * headDim), uint64(headDim), scale,
			nil, nil, nil, nil, nil, nil,
		},
		check: func(t testing.TB, got arrays) {
			top := got[2].Max(1).Reshape(heads*queries, 1)
			weight := got[2].Sub(top).Exp()
			sum := weight.Mul(got[1]).Sum(1).Reshape(heads*queries, 1)
			out := weight.Reshape(heads*queries, blocks, 1).Mul(got[0]).Sum(1).Div(sum)
			var want []float64
			for row := range heads * queries {
				first := row / queries / groups * keys * headDim
				scores := mlxtest.MatMul(vq[row*headDim:], vk[first:], 1, keys, headDim, true)
				for j := range scores {
					scores[j] *= float64(scale)
				}
				want = append(want, mlxtest.MatMul(mlxtest.Softmax(scores), vv[first:], 1, headDim, keys, false)...)
			}
			mlxtest.RequireNear(t, want, out, mlxtest.Rounded(d, 2*headDim+keys, 4))
		},
	}
}
