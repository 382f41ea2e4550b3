package customkernels

import (
	"cmp"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// addSorts adds sorts of rows. The inputs have few distinct values and therefore many equal elements.
func addSorts(c *corpus) {
	for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16, mlxc.Int32} {
		c.addBitonicSort(d, 3, 100, 128, 48)
	}
	c.addBitonicSort(mlxc.Float32, 2, 257, 512, 256)
	for _, d := range mlxtest.FloatDTypes {
		c.addTopK(d, 5, 77, 64)
		c.addArgmax(d, 4, 301, 96)
	}
	c.addTopK(mlxc.Float32, 2, 6, 32)
	c.addArgmax(mlxc.Float32, 3, 9, 32)
}

func (c *corpus) addBitonicSort(d mlxc.DType, rows, width, n, threads int) {
	x, v := c.Integers(d, 40, rows, width)
	c.add(namedLaunch{
		name:   named("bitonic_sort", d, width),
		kernel: c.kernel("bitonic_sort", ""),
		launch: Launch{
			Grid: [3]int{threads, rows}, Threadgroup: [3]int{threads}, Template: template("T", d, "N", n),
			Outputs: []mlxc.Output{output(d, rows, width), output(mlxc.Uint32, rows, width)},
		},
		inputs: inputs(arrays{x}, ints(width)),
		check: func(t testing.TB, out arrays) {
			checkPicked(t, v, width, width, cmp.Compare[float64], out[0], out[1])
		},
	})
}

// checkPicked requires that picked holds the first n elements of each sorted row, and at their indices, exactly.
func checkPicked(t testing.TB, x []float64, width, n int, compare func(a, b float64) int, picked, at *mlxc.Array) {
	t.Helper()
	mlxtest.RequireNear(t, mlxtest.ByRow(x, width, func(row []float64) []float64 {
		p, _ := mlxtest.Sorted(row, n, compare)
		return p
	}), picked, mlxtest.Bound{})
	mlxtest.RequireNear(t, mlxtest.ByRow(x, width, func(row []float64) []float64 {
		_, a := mlxtest.Sorted(row, n, compare)
		return a
	}), at, mlxtest.Bound{})
}

func (c *corpus) addTopK(d mlxc.DType, rows, width, threads int) {
	const k = 4
	x, v := c.Integers(d, 25, rows, width)
	c.add(namedLaunch{
		name:   named("top_k", d, width),
		kernel: c.kernel("top_k", ""),
		launch: Launch{
			Grid: [3]int{32 * rows}, Threadgroup: [3]int{threads}, Template: template("T", d, "K", k),
			Outputs: []mlxc.Output{output(d, rows, k), output(mlxc.Uint32, rows, k)},
		},
		inputs: inputs(arrays{x}, uints(width)),
		check: func(t testing.TB, out arrays) {
			checkPicked(t, v, width, k, mlxtest.Descending, out[0], out[1])
		},
	})
}

func (c *corpus) addArgmax(d mlxc.DType, rows, width, threads int) {
	x, v := c.Integers(d, 90, rows, width)
	c.add(namedLaunch{
		name:   named("argmax", d, width),
		kernel: c.kernel("argmax", ""),
		launch: Launch{
			Grid: [3]int{threads, rows}, Threadgroup: [3]int{threads}, Template: template("T", d),
			Outputs: []mlxc.Output{output(mlxc.Uint32, rows), output(d, rows)},
		},
		inputs: inputs(arrays{x}, uints(width)),
		check: func(t testing.TB, out arrays) {
			checkPicked(t, v, width, 1, mlxtest.Descending, out[1], out[0])
		},
	})
}
