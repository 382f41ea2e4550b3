package customkernels

import (
	"math"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// addScans adds four kinds of prefix sums, and kernels that use them.
func addScans(c *corpus) {
	for _, d := range mlxtest.FloatDTypes {
		c.addInclusiveScan(d, 3, 301, 96)
		c.addSegmentedScan(d, 333, 70)
	}
	c.addInclusiveScan(mlxc.Float32, 2, 5, 256)
	c.addInclusiveScan(mlxc.Float32, 1, 130, 33)
	for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Int32} {
		c.addSimdScan(d, 3, 777, 96)
		c.addSimdScan(d, 2, 9, 32)
	}
	for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16} {
		c.addCompaction(d, 519, 128)
	}
}

func (c *corpus) addInclusiveScan(d mlxc.DType, rows, width, threads int) {
	x, v := c.Normal(d, rows, width)
	c.add(namedLaunch{
		name:   named("inclusive_scan", d, width, threads),
		kernel: c.kernel("inclusive_scan", "inclusive_scan"),
		launch: Launch{
			Grid: [3]int{threads, rows}, Threadgroup: [3]int{threads},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, rows, width)},
		},
		inputs: inputs(arrays{x}, uints(width)),
		check: func(t testing.TB, out arrays) {
			mlxtest.RequireNear(t, mlxtest.ByRow(v, width, mlxtest.PrefixSums), out[0], mlxtest.Rounded(d, width, 3*math.Sqrt(float64(width))))
		},
	})
}

func (c *corpus) addSegmentedScan(d mlxc.DType, size, threads int) {
	x, v := c.Normal(d, size)
	start := make([]uint8, size)
	want := make([]float64, size)
	sum := 0.0
	for i := range start {
		if c.Random.IntN(12) == 0 {
			start[i], sum = 1, 0
		}
		sum += v[i]
		want[i] = sum
	}
	c.add(namedLaunch{
		name:   named("segmented_scan", d, size),
		kernel: c.kernel("segmented_scan", ""),
		launch: Launch{
			Grid: [3]int{threads}, Threadgroup: [3]int{threads},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, size)},
		},
		inputs: inputs(arrays{x, mlxc.FromSlice(start)}, uints(size)),
		check: func(t testing.TB, out arrays) {
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(d, 64, 20))
		},
	})
}

func (c *corpus) addSimdScan(d mlxc.DType, rows, width, threads int) {
	x, v := c.Integers(d, 100, rows, width)
	c.add(namedLaunch{
		name:   named("simd_scan", d, width),
		kernel: c.kernel("simd_scan", ""),
		launch: Launch{
			Grid: [3]int{threads, rows}, Threadgroup: [3]int{threads},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, rows, width)},
		},
		inputs: inputs(arrays{x}, uints(width)),
		check: func(t testing.TB, out arrays) {
			want := mlxtest.ByRow(v, width, func(row []float64) []float64 {
				return append([]float64{0}, mlxtest.PrefixSums(row)[:width-1]...)
			})
			mlxtest.RequireNear(t, want, out[0], mlxtest.Bound{}) // integers below 2²⁴ are exact in float32
		},
	})
}

func (c *corpus) addCompaction(d mlxc.DType, size, threads int) {
	const threshold = 0.25
	x, v := c.Normal(d, size)
	kept, from := make([]float64, size), make([]float64, size)
	count := 0
	for i, e := range v {
		if e > threshold {
			kept[count], from[count] = e, float64(i)
			count++
		}
	}
	c.add(namedLaunch{
		name:   named("compaction", d),
		kernel: c.kernel("compaction", ""),
		launch: Launch{
			Grid: [3]int{threads}, Threadgroup: [3]int{threads}, Template: template("T", d),
			Outputs:   []mlxc.Output{output(d, size), output(mlxc.Uint32, size), output(mlxc.Uint32, 1)},
			InitValue: initially(0),
		},
		inputs: inputs(arrays{x}, uints(size), arrays{mlxc.Scalar[float32](threshold)}),
		check: func(t testing.TB, out arrays) {
			mlxtest.RequireNear(t, kept, out[0], mlxtest.Bound{})
			mlxtest.RequireNear(t, from, out[1], mlxtest.Bound{})
			mlxtest.RequireNear(t, []float64{float64(count)}, out[2], mlxtest.Bound{})
		},
	})
}
