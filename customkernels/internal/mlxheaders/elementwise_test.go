package mlxheaders

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// mlxElementwise returns the cases of elementwise kernels and copies.
func (c *corpus) mlxElementwise() []headerCase {
	unary := []string{"unary_ops.h"}
	binary := []string{"binary_ops.h"}
	cases := []headerCase{
		{"arange.h", nil, "arange", "{T}", []mlxc.DType{mlxc.Float32, mlxc.Int32}, nil, c.arange},
		{"copy.h", nil, "copy_v", "float, {T}, 2", []mlxc.DType{mlxc.Float16, mlxc.BFloat16, mlxc.Int32}, nil, c.copyVector},
		{"copy.h", nil, "copy_g", "{T}, {T}, 2, int64_t", onlyFloat32, nil, c.copyStrided},
		{"ternary.h", []string{"ternary_ops.h"}, "ternary_v", "{T}, Select, false, false, 2", onlyFloat32, nil, c.ternary},
		{"binary_two.h", binary, "binary_vv", "{T}, {T}, DivMod, 2", onlyFloat32, nil, c.divMod},
		{"binary.h", binary, "binary_g", "{T}, {T}, Add, 1, int64_t", onlyFloat32, nil, c.binaryStrided},
		{"indexing/gather_front.h", nil, "gather_front", "{T}, int32_t, int, 2", onlyFloat32, nil, c.gatherFront},
	}
	operations := map[string]func(a, b *mlxc.Array) *mlxc.Array{
		"Add": (*mlxc.Array).Add, "Multiply": (*mlxc.Array).Mul, "Divide": (*mlxc.Array).Div,
		"Maximum": (*mlxc.Array).Maximum, "Power": (*mlxc.Array).Pow,
	}
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		f := operations[name]
		cases = append(cases, headerCase{
			"binary.h", binary, "binary_vv", "{T}, {T}, " + name + ", 2", dtypesOf(name == "Divide"), nil,
			func(d mlxc.DType) headerLaunch { return c.binaryVector(d, f) },
		})
	}
	functions := map[string]func(x float64) float64{
		"Exp": math.Exp, "Log": math.Log, "Tanh": math.Tanh, "Sin": math.Sin, "Erf": math.Erf, "Expm1": math.Expm1,
		"Rsqrt":   func(x float64) float64 { return 1 / math.Sqrt(x) },
		"Sigmoid": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	}
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		f := functions[name]
		cases = append(cases, headerCase{
			"unary.h", unary, "unary_v", "{T}, {T}, " + name + ", 2", dtypesOf(name == "Exp" || name == "Tanh"), nil,
			func(d mlxc.DType) headerLaunch {
				// Metal's functions have errors up to 4 ulp. For float16 and bfloat16 they also round intermediate
				// results to the dtype.
				b := mlxtest.Bound{Absolute: 4 * mlxtest.Roundoff(d), Relative: 8 * mlxtest.Roundoff(d)}
				if name == "Expm1" || name == "Erf" {
					// MLX's expm1f subtracts j·ln 2, with j ≤ 6 here, but only the upper part of ln 2. Its error is
					// j·1.43e-6 on every device. erf calls it.
					b.Relative += 6 * 1.43e-6
				}
				return c.unaryVector(d, f, b)
			},
		})
	}
	return cases
}

func dtypesOf(all bool) []mlxc.DType {
	if all {
		return mlxtest.FloatDTypes
	}
	return onlyFloat32
}

func (c *corpus) arange(d mlxc.DType) headerLaunch {
	l := headerLaunch{
		grid: [3]int{45, 1, 1}, threadgroup: [3]int{32, 1, 1},
		arguments: []any{float32(3), float32(2), result{dtype: d, shape: []int{45}}},
		check:     near(d, 0, 0, mlxc.Arange(d, 3, 3+2*45, 2)),
	}
	if d == mlxc.Int32 {
		l.arguments[0], l.arguments[1] = int32(3), int32(2)
	}
	return l
}

func (c *corpus) copyVector(d mlxc.DType) headerLaunch {
	const size = 135
	x, _ := c.Uniform(mlxc.Float32, -50, 50, size)
	return headerLaunch{
		grid: [3]int{(size + 1) / 2, 1, 1}, threadgroup: [3]int{32, 1, 1},
		arguments: []any{x, result{dtype: d, shape: []int{size}}, uint32(size)},
		check:     near(d, 0, 0, x.AsType(d)),
	}
}

// copyStrided copies a transposed array to a contiguous one.
func (c *corpus) copyStrided(d mlxc.DType) headerLaunch {
	const a, b, e = 3, 5, 7 // x is [a, b, e], the result [e, a, b]
	x, _ := c.Normal(d, a, b, e)
	return headerLaunch{
		grid: [3]int{(b + 1) / 2, a, e}, threadgroup: [3]int{2, 2, 2},
		arguments: []any{x, result{dtype: d, shape: []int{e, a, b}}, []int32{e, a, b}, []int64{1, b * e, e}, nil, int32(3)},
		check:     near(d, 0, 0, x.Transpose(2, 0, 1).Contiguous()),
	}
}

func (c *corpus) ternary(d mlxc.DType) headerLaunch {
	const size = 135
	condition := make([]bool, size)
	for i := range condition {
		condition[i] = c.Random.IntN(2) == 0
	}
	chosen := mlxc.FromSlice(condition)
	x, _ := c.Normal(d, size)
	y, _ := c.Normal(d, size)
	return headerLaunch{
		grid: [3]int{(size + 1) / 2, 1, 1}, threadgroup: [3]int{32, 1, 1},
		arguments: []any{chosen, x, y, result{dtype: d, shape: []int{size}}, uint32(size)},
		check:     near(d, 0, 0, mlxc.Where(chosen, x, y)),
	}
}

func (c *corpus) divMod(d mlxc.DType) headerLaunch {
	const size = 135
	x, v := c.Uniform(d, -50, 50, size)
	y, w := c.Uniform(d, 0.5, 5, size)
	return headerLaunch{
		grid: [3]int{(size + 1) / 2, 1, 1}, threadgroup: [3]int{32, 1, 1},
		arguments: []any{x, y, result{dtype: d, shape: []int{size}}, result{dtype: d, shape: []int{size}}, uint32(size)},
		check: func(t testing.TB, got arrays) {
			quotient, remainder := mlxtest.Values(t, got[0]), mlxtest.Values(t, got[1])
			for i := range v {
				quotient[i] = quotient[i]*w[i] + remainder[i]
			}
			mlxtest.RequireNear(t, quotient, x, mlxtest.Bound{Absolute: 1e-5, Relative: 0})
		},
	}
}

// binaryStrided adds one row to every row of an array.
func (c *corpus) binaryStrided(d mlxc.DType) headerLaunch {
	const a, b, e = 3, 5, 7
	x, _ := c.Normal(d, a, b, e)
	y, _ := c.Normal(d, e)
	return headerLaunch{
		grid: [3]int{e, b, a}, threadgroup: [3]int{4, 4, 2},
		arguments: []any{x, y, result{dtype: d, shape: []int{a, b, e}}, []int32{a, b, e}, []int64{b * e, e, 1}, []int64{0, 0, 1}, int32(3)},
		check:     near(d, 0, 0, x.Add(y)),
	}
}

func (c *corpus) gatherFront(d mlxc.DType) headerLaunch {
	const rows, width, size = 13, 37, 9
	x, v := c.Normal(d, rows, width)
	index := make([]int32, size)
	var want []float64
	for i := range index {
		at := c.Random.IntN(rows)
		want = append(want, v[at*width:(at+1)*width]...)
		index[i] = int32(at - i%2*rows)
	}
	return headerLaunch{
		grid: [3]int{(width + 1) / 2, size, 1}, threadgroup: [3]int{8, 4, 1},
		arguments: []any{x, index, result{dtype: d, shape: []int{size, width}}, int64(width), int32(rows)},
		check: func(t testing.TB, got arrays) {
			mlxtest.RequireNear(t, want, got[0], mlxtest.Bound{})
		},
	}
}

func (c *corpus) binaryVector(d mlxc.DType, f func(a, b *mlxc.Array) *mlxc.Array) headerLaunch {
	const size = 135
	x, _ := c.Uniform(d, 0.5, 3, size)
	y, _ := c.Uniform(d, 0.5, 3, size)
	return headerLaunch{
		grid: [3]int{(size + 1) / 2, 1, 1}, threadgroup: [3]int{32, 1, 1},
		arguments: []any{x, y, result{dtype: d, shape: []int{size}}, uint32(size)},
		check:     near(d, 4, 2, f(x.AsType(mlxc.Float32), y.AsType(mlxc.Float32))),
	}
}

func (c *corpus) unaryVector(d mlxc.DType, f func(float64) float64, b mlxtest.Bound) headerLaunch {
	const size = 135
	x, v := c.Uniform(d, 0.01, 4, size)
	return headerLaunch{
		grid: [3]int{(size + 1) / 2, 1, 1}, threadgroup: [3]int{32, 1, 1},
		arguments: []any{x, result{dtype: d, shape: []int{size}}, uint32(size)},
		check: func(t testing.TB, got arrays) {
			want := make([]float64, size)
			for i := range want {
				want[i] = f(v[i])
			}
			mlxtest.RequireNear(t, want, got[0], b)
		},
	}
}
