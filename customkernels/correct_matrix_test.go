package customkernels

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// addMatrixProducts adds matrix products, and products of quantized matrices with vectors.
func addMatrixProducts(c *corpus) {
	for _, d := range mlxtest.FloatDTypes {
		c.addSimdgroupMatMul(d, 50, 45, 37)
		c.addSimdgroupMatMulNT(d, 32, 48, 24)
		c.addTiledMatMul(d, 2, 19, 37, 21)
		c.addQuantizedMatVec(d, 4, 7, 96)
		c.addQuantizedMatVec(d, 8, 5, 160)
	}
	c.addSimdgroupMatMul(mlxc.Float32, 5, 7, 3)
}

func (c *corpus) addSimdgroupMatMul(d mlxc.DType, m, n, k int) {
	a, x := c.Normal(d, m, k)
	b, y := c.Normal(d, k, n)
	c.add(namedLaunch{
		name:   named("simdgroup_matmul", d, m),
		kernel: c.kernel("simdgroup_matmul", "simdgroup_matmul"),
		launch: Launch{
			Grid: [3]int{128 * ((n + 31) / 32), (m + 31) / 32}, Threadgroup: [3]int{128},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, m, n)},
		},
		inputs: inputs(arrays{a, b}, ints(m, n, k)),
		check: func(t testing.TB, out arrays) {
			mlxtest.RequireNear(t, mlxtest.MatMul(x, y, m, n, k, false), out[0], mlxtest.ProductBound(d, k))
			// On the CPU: a GPU may multiply in TF32.
			require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() {
				product := mlxtest.Values(t, a.AsType(mlxc.Float32).MatMul(b.AsType(mlxc.Float32)))
				mlxtest.RequireNear(t, product, out[0], twice(mlxtest.ProductBound(d, k)))
			}))
		},
	})
}

// twice returns the bound on the difference of two results that each have an error up to b.
func twice(b mlxtest.Bound) mlxtest.Bound {
	return mlxtest.Bound{Absolute: 2 * b.Absolute, Relative: 2 * b.Relative}
}

func (c *corpus) addSimdgroupMatMulNT(d mlxc.DType, m, n, k int) {
	a, x := c.Normal(d, m, k)
	b, y := c.Normal(d, n, k)
	c.add(namedLaunch{
		name:   named("simdgroup_matmul_nt", d),
		kernel: c.kernel("simdgroup_matmul", "simdgroup_matmul_nt"),
		launch: Launch{
			Grid: [3]int{32 * n / 16, m / 16}, Threadgroup: [3]int{32},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, m, n)},
		},
		inputs: inputs(arrays{a, b}, ints(n, k)),
		check: func(t testing.TB, out arrays) {
			mlxtest.RequireNear(t, mlxtest.MatMul(x, y, m, n, k, true), out[0], mlxtest.ProductBound(d, k))
		},
	})
}

func (c *corpus) addTiledMatMul(d mlxc.DType, batch, m, n, k int) {
	a, x := c.Normal(d, batch, m, k)
	b, y := c.Normal(d, batch, k, n)
	c.add(namedLaunch{
		name:   named("tiled_matmul", d),
		kernel: c.kernel("tiled_matmul", ""),
		launch: Launch{
			Grid: [3]int{(n + 15) / 16 * 16, (m + 15) / 16 * 16, batch}, Threadgroup: [3]int{16, 16},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, batch, m, n)},
		},
		inputs: inputs(arrays{a, b}, uints(m, n, k)),
		check: func(t testing.TB, out arrays) {
			var want []float64
			for i := range batch {
				want = append(want, mlxtest.MatMul(x[i*m*k:], y[i*k*n:], m, n, k, false)...)
			}
			mlxtest.RequireNear(t, want, out[0], mlxtest.ProductBound(d, k))
		},
	})
}

func (c *corpus) addQuantizedMatVec(d mlxc.DType, bits, rows, columns int) {
	perWord, groups := 32/bits, columns/32
	codes := make([]uint32, rows*columns/perWord)
	for i := range codes {
		codes[i] = c.Random.Uint32()
	}
	scale, s := c.Uniform(d, 0.01, 0.1, rows, groups)
	bias, b := c.Normal(d, rows, groups)
	x, v := c.Normal(d, columns)
	c.add(namedLaunch{
		name:   named("quantized_matvec", d, bits),
		kernel: c.kernel("quantized_matvec", map[int]string{4: "matvec_4bit", 8: "matvec_8bit"}[bits]),
		launch: Launch{
			Grid: [3]int{32 * rows}, Threadgroup: [3]int{64},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, rows)},
		},
		inputs: inputs(arrays{mlxc.FromSlice(codes, rows, columns/perWord), scale, bias, x}, uints(columns)),
		check: func(t testing.TB, out arrays) {
			want := make([]float64, rows)
			for r := range rows {
				for i := range columns {
					word := codes[(r*columns+i)/perWord]
					code := word >> (bits * (i % perWord)) & (1<<bits - 1)
					g := r*groups + i/32
					want[r] += (s[g]*float64(code) + b[g]) * v[i]
				}
			}
			// Terms are at most 0.1·255·4.
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(d, columns, 100))
		},
	})
}
