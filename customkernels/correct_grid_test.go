package customkernels

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// addConvolutions adds convolutions with a halo in threadgroup memory.
func addConvolutions(c *corpus) {
	for _, d := range mlxtest.FloatDTypes {
		c.addConv1D(d, 3, 301, 100)
		c.addConv2D(d)
	}
	c.addConv1D(mlxc.Float32, 2, 4, 128)
}

// addGrids adds launches of two and three dimensions whose last threadgroups are smaller.
func addGrids(c *corpus) {
	for _, d := range mlxtest.FloatDTypes {
		c.addStencil(d, 13, 7, 6)
		c.addTranspose(d, 45, 70)
	}
	c.addStencil(mlxc.Float32, 1, 2, 5)
}

func (c *corpus) addConv1D(d mlxc.DType, channels, length, threads int) {
	const k = 7
	x, v := c.Normal(d, channels, length)
	w, vw := c.Normal(d, channels, k)
	c.add(namedLaunch{
		name:   named("conv1d", d, length),
		kernel: c.kernel("conv1d", ""),
		launch: Launch{
			Grid: [3]int{length, channels}, Threadgroup: [3]int{threads},
			Template: template("T", d, "K", k), Outputs: []mlxc.Output{output(d, channels, length)},
		},
		inputs: inputs(arrays{x, w}, ints(length)),
		check: func(t testing.TB, out arrays) {
			want := make([]float64, len(v))
			for i := range want {
				for j := range k {
					if at := i%length + j - k/2; at >= 0 && at < length {
						want[i] += vw[i/length*k+j] * v[i/length*length+at]
					}
				}
			}
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(d, 2*k, 15))
		},
	})
}

func (c *corpus) addConv2D(d mlxc.DType) {
	const channels, filters, height, width, k = 2, 3, 11, 21, 5
	x, v := c.Normal(d, channels, height, width)
	w, vw := c.Normal(d, filters, channels, k, k)
	c.add(namedLaunch{
		name:   named("conv2d", d),
		kernel: c.kernel("conv2d", ""),
		launch: Launch{
			Grid: [3]int{width, height, filters}, Threadgroup: [3]int{16, 8, 1},
			Template: template("T", d, "K", k), Outputs: []mlxc.Output{output(d, filters, height, width)},
		},
		inputs: inputs(arrays{x, w}, ints(channels)),
		check: func(t testing.TB, out arrays) {
			var want []float64
			for f := range filters {
				for i := range height {
					for j := range width {
						sum := 0.0
						for e := range channels * k * k {
							channel, p, q := e/(k*k), e/k%k, e%k
							row := min(max(i+p-k/2, 0), height-1)
							column := min(max(j+q-k/2, 0), width-1)
							sum += vw[f*channels*k*k+e] * v[(channel*height+row)*width+column]
						}
						want = append(want, sum)
					}
				}
			}
			mlxtest.RequireNear(t, want, out[0], mlxtest.ProductBound(d, channels*k*k))
		},
	})
}

func (c *corpus) addStencil(d mlxc.DType, width, height, depth int) {
	const a = 0.125
	x, v := c.Normal(d, depth, height, width)
	at := func(i, j, k int) float64 {
		if i < 0 || j < 0 || k < 0 || i >= depth || j >= height || k >= width {
			return 0
		}
		return v[(i*height+j)*width+k]
	}
	c.add(namedLaunch{
		name:   named("stencil3d", d, width),
		kernel: c.kernel("stencil3d", ""),
		launch: Launch{
			Grid: [3]int{width, height, depth}, Threadgroup: [3]int{8, 4, 4},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, depth, height, width)},
		},
		inputs: arrays{x, mlxc.Scalar[float32](a)},
		check: func(t testing.TB, out arrays) {
			var want []float64
			for i := range depth {
				for j := range height {
					for k := range width {
						around := at(i-1, j, k) + at(i+1, j, k) + at(i, j-1, k) + at(i, j+1, k) + at(i, j, k-1) + at(i, j, k+1)
						want = append(want, at(i, j, k)+a*(around-6*at(i, j, k)))
					}
				}
			}
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(d, 9, 10))
		},
	})
}

func (c *corpus) addTranspose(d mlxc.DType, rows, columns int) {
	x, _ := c.Normal(d, rows, columns)
	size := mlxc.FromSlice([]uint32{uint32(columns), uint32(rows), 0, 0, 0, 0, 0, 0})
	c.add(namedLaunch{
		name:   named("transpose", d),
		kernel: c.kernel("transpose", ""),
		launch: Launch{
			Grid: [3]int{32 * ((columns + 31) / 32), 8 * ((rows + 31) / 32)}, Threadgroup: [3]int{32, 8},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, columns, rows)},
		},
		inputs: arrays{x, size},
		check: func(t testing.TB, out arrays) {
			mlxtest.RequireNear(t, mlxtest.Values(t, x.Transpose()), out[0], mlxtest.Bound{})
		},
	})
}
