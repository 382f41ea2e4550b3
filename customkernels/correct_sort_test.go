package customkernels

import (
	"cmp"
	"slices"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// addSorts: orders of the elements of rows. Few different values make many equal ones.
func addSorts(c *corpus) {
	for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16, mlxc.Int32} {
		c.addBitonicSort(d, 3, 100, 128, 48)
	}
	c.addBitonicSort(mlxc.Float32, 2, 257, 512, 256)
	for _, d := range floatDTypes {
		c.addTopK(d, 5, 77, 64)
		c.addArgmax(d, 4, 301, 96)
	}
	c.addTopK(mlxc.Float32, 2, 6, 32)
	c.addArgmax(mlxc.Float32, 3, 9, 32)
}

// order is the places of a row's elements in the order that less gives, the leftmost of
// equal ones first.
func order(row []float64, compare func(a, b float64) int) []int {
	places := make([]int, len(row))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return compare(row[a], row[b]) })
	return places
}

// pick returns the first n elements of a row in an order, and their places.
func pick(row []float64, places []int, n int) (picked, at []float64) {
	for _, i := range places[:n] {
		picked, at = append(picked, row[i]), append(at, float64(i))
	}
	return picked, at
}

func falling(a, b float64) int { return cmp.Compare(b, a) }

func (c *corpus) addBitonicSort(d mlxc.DType, rows, width, n, threads int) {
	x, v := c.integers(d, 40, rows, width)
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

// checkPicked compares picked elements and their places, exactly.
func checkPicked(t testing.TB, x []float64, width, n int, compare func(a, b float64) int, picked, at *mlxc.Array) {
	t.Helper()
	requireNear(t, byRow(x, width, func(row []float64) []float64 {
		p, _ := pick(row, order(row, compare), n)
		return p
	}), picked, bound{})
	requireNear(t, byRow(x, width, func(row []float64) []float64 {
		_, a := pick(row, order(row, compare), n)
		return a
	}), at, bound{})
}

func (c *corpus) addTopK(d mlxc.DType, rows, width, threads int) {
	const k = 4
	x, v := c.integers(d, 25, rows, width)
	c.add(namedLaunch{
		name:   named("top_k", d, width),
		kernel: c.kernel("top_k", ""),
		launch: Launch{
			Grid: [3]int{32 * rows}, Threadgroup: [3]int{threads}, Template: template("T", d, "K", k),
			Outputs: []mlxc.Output{output(d, rows, k), output(mlxc.Uint32, rows, k)},
		},
		inputs: inputs(arrays{x}, uints(width)),
		check: func(t testing.TB, out arrays) {
			checkPicked(t, v, width, k, falling, out[0], out[1])
		},
	})
}

func (c *corpus) addArgmax(d mlxc.DType, rows, width, threads int) {
	x, v := c.integers(d, 90, rows, width)
	c.add(namedLaunch{
		name:   named("argmax", d, width),
		kernel: c.kernel("argmax", ""),
		launch: Launch{
			Grid: [3]int{threads, rows}, Threadgroup: [3]int{threads}, Template: template("T", d),
			Outputs: []mlxc.Output{output(mlxc.Uint32, rows), output(d, rows)},
		},
		inputs: inputs(arrays{x}, uints(width)),
		check: func(t testing.TB, out arrays) {
			checkPicked(t, v, width, 1, falling, out[1], out[0])
		},
	})
}
