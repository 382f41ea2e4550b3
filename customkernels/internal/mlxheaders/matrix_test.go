package mlxheaders

import (
	"math"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// mlxProducts returns the cases of vector attention and matrix-vector products.
func (c *corpus) mlxProducts() []headerCase {
	causal := map[string]string{"do_causal": "true"}
	masked := map[string]string{"has_mask": "true", "bool_mask": "true"}
	return []headerCase{
		{"sdpa_vector.h", nil, "sdpa_vector", "{T}, 64, 64", mlxtest.FloatDTypes, nil, func(d mlxc.DType) headerLaunch { return c.sdpaVector(d, "") }},
		{"sdpa_vector.h", nil, "sdpa_vector", "{T}, 64, 64", onlyFloat32, causal, func(d mlxc.DType) headerLaunch { return c.sdpaVector(d, "causal") }},
		{"sdpa_vector.h", nil, "sdpa_vector", "{T}, 64, 64", onlyFloat32, masked, func(d mlxc.DType) headerLaunch { return c.sdpaVector(d, "mask") }},
		{"gemv.h", nil, "gemv", "{T}, 4, 1, 1, 32, 4, 4, false, false", mlxtest.FloatDTypes, nil, func(d mlxc.DType) headerLaunch { return c.gemv(d, false) }},
		{"gemv.h", nil, "gemv_t", "{T}, 1, 2, 8, 4, 4, 4, false, false", mlxtest.FloatDTypes, nil, func(d mlxc.DType) headerLaunch { return c.gemv(d, true) }},
		{"dot.h", nil, "dot_product", "{T}, 32, 64, 2", mlxtest.FloatDTypes, nil, c.dotProduct},
	}
}

// sdpaVector is vector attention with two query heads for each key/value head.
func (c *corpus) sdpaVector(d mlxc.DType, mask string) headerLaunch {
	const heads, groups, queries, keys, headDim = 4, 2, 3, 45, 64
	f := mlxc.Float32
	scale := float32(1 / math.Sqrt(headDim))
	q, _ := c.Normal(d, heads, queries, headDim)
	k, _ := c.Normal(d, heads/groups, keys, headDim)
	v, _ := c.Normal(d, heads/groups, keys, headDim)
	allowed := make([]bool, queries*keys)
	for i := range allowed {
		switch mask {
		case "causal":
			allowed[i] = i%keys <= i/keys+keys-queries
		case "mask":
			allowed[i] = c.Random.IntN(3) > 0
		default:
			allowed[i] = true
		}
	}
	allow := mlxc.FromSlice(allowed, queries, keys)
	none, noMask := mlxc.Zeros(d, 1), mlxc.FromSlice([]bool{false})
	bmask := noMask
	if mask == "mask" {
		bmask = allow
	}
	return headerLaunch{
		grid: [3]int{1024 * heads, queries, 1}, threadgroup: [3]int{1024, 1, 1},
		arguments: []any{
			q, k, v,
			result{dtype: d, shape: []int{heads, queries, headDim}},
			int32(groups), int32(keys),
			uint64(keys * headDim), uint64(headDim), uint64(keys * headDim), uint64(headDim), scale,
			bmask, none, int32(1), int32(keys), int32(0), none, int32(heads),
		},
		check: func(t testing.TB, got arrays) {
			repeat := func(a *mlxc.Array) *mlxc.Array {
				return a.AsType(f).Reshape(heads/groups, 1, keys, headDim).
					BroadcastTo(heads/groups, groups, keys, headDim).Reshape(heads, keys, headDim)
			}
			scores := q.AsType(f).MatMul(repeat(k).Transpose(0, 2, 1)).MulScalar(float64(scale))
			scores = mlxc.Where(allow, scores, mlxc.Scalar(float32(-1e30)))
			e := scores.Sub(scores.Max(2).Reshape(heads, queries, 1)).Exp()
			want := e.Div(e.Sum(2).Reshape(heads, queries, 1)).MatMul(repeat(v))
			mlxtest.RequireNear(t, mlxtest.Values(t, want), got[0], mlxtest.Rounded(d, 2*headDim+keys, 4))
		},
	}
}

func (c *corpus) gemv(d mlxc.DType, transposed bool) headerLaunch {
	const in, out = 203, 77
	x, _ := c.Normal(d, 1, in)
	l := headerLaunch{grid: [3]int{32 * ((out + 15) / 16), 1, 4}, threadgroup: [3]int{32, 1, 4}}
	matrix, _ := c.Normal(d, out, in)
	leading, product := in, matrix.Transpose()
	if transposed {
		l.grid, l.threadgroup = [3]int{32 * ((out + 31) / 32), 2, 1}, [3]int{32, 2, 1}
		matrix, _ = c.Normal(d, in, out)
		leading, product = out, matrix
	}
	l.arguments = []any{
		matrix, x, mlxc.Zeros(d, 1),
		result{dtype: d, shape: []int{1, out}},
		int32(in), int32(out), int32(leading), float32(1), float32(0),
		int32(1),
		[]int32{1},
		[]int64{0},
		[]int64{0},
		[]int64{0},
		int32(0),
	}
	l.check = func(t testing.TB, got arrays) {
		want := x.AsType(mlxc.Float32).MatMul(product.AsType(mlxc.Float32))
		mlxtest.RequireNear(t, mlxtest.Values(t, want), got[0], mlxtest.ProductBound(d, in))
	}
	return l
}

func (c *corpus) dotProduct(d mlxc.DType) headerLaunch {
	const n, perGroup = 5001, 32 * 64
	x, v := c.Normal(d, n)
	y, w := c.Normal(d, n)
	const groups = (n + perGroup - 1) / perGroup
	return headerLaunch{
		grid: [3]int{64 * groups, 1, 1}, threadgroup: [3]int{64, 1, 1},
		arguments: []any{x, y, result{dtype: mlxc.Float32, shape: []int{groups}}, int32(n)},
		check: func(t testing.TB, got arrays) {
			want := mlxtest.MatMul(v, w, 1, 1, n, false)
			mlxtest.RequireNear(t, want, got[0].Sum().Reshape(1), mlxtest.ProductBound(mlxc.Float32, n))
		},
	}
}
