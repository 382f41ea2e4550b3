package customkernels

import (
	"math"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// addVectors adds kernels with vectors, swizzles, per-thread matrices and quadgroups.
func addVectors(c *corpus) {
	for _, d := range mlxtest.FloatDTypes {
		c.addGELU(d, 135)
		c.addQuadTranspose(d, 19)
	}
	c.addFFT(3, 64)
	c.addFFT(1, 512)
	c.addRotation(77)
}

func (c *corpus) addGELU(d mlxc.DType, size int) {
	x, v := c.Normal(d, size, 2)
	c.add(namedLaunch{
		name:   named("geglu", d),
		kernel: c.kernel("gelu", ""),
		launch: Launch{
			Grid: [3]int{(size + 3) / 4}, Threadgroup: [3]int{32},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, size)},
		},
		inputs: inputs(arrays{x}, uints(size)),
		check: func(t testing.TB, out arrays) {
			want := mlxtest.ByRow(v, 2, func(pair []float64) []float64 {
				a := pair[0]
				return []float64{a / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(a+0.044715*a*a*a))) * pair[1]}
			})
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(d, 16, 12))
		},
	})
}

func (c *corpus) addQuadTranspose(d mlxc.DType, blocks int) {
	x, _ := c.Normal(d, blocks, 4, 4)
	c.add(namedLaunch{
		name:   named("quad_transpose", d),
		kernel: c.kernel("quad_transpose", ""),
		launch: Launch{
			Grid: [3]int{4 * blocks}, Threadgroup: [3]int{40}, // the last simdgroup of each threadgroup is partial
			Template: template("T", d), Outputs: []mlxc.Output{output(d, blocks, 4, 4)},
		},
		inputs: arrays{x},
		check: func(t testing.TB, out arrays) {
			mlxtest.RequireNear(t, mlxtest.Values(t, x.Transpose(0, 2, 1)), out[0], mlxtest.Bound{})
		},
	})
}

func (c *corpus) addFFT(rows, n int) {
	x, v := c.Normal(mlxc.Float32, rows, n, 2)
	c.add(namedLaunch{
		name:   named("fft", n),
		kernel: c.kernel("fft", ""),
		launch: Launch{
			Grid: [3]int{n / 2, rows}, Threadgroup: [3]int{n / 2},
			Template: template("N", n), Outputs: []mlxc.Output{output(mlxc.Float32, rows, n, 2)},
		},
		inputs: arrays{x},
		check: func(t testing.TB, out arrays) {
			// There are log₂ N passes of a few operations each. Values are a few times √N at most.
			mlxtest.RequireNear(t, mlxtest.ByRow(v, 2*n, mlxtest.Fourier), out[0], mlxtest.Rounded(mlxc.Float32, 8*int(math.Log2(float64(n))), 4*math.Sqrt(float64(n))))
		},
	})
}

func (c *corpus) addRotation(points int) {
	const angle = 0.75
	x, v := c.Normal(mlxc.Float32, points, 3)
	c.add(namedLaunch{
		name:   "rotate_points",
		kernel: c.kernel("rotate", ""),
		launch: Launch{
			Grid: [3]int{points}, Threadgroup: [3]int{32},
			Outputs: []mlxc.Output{output(mlxc.Float32, points, 3), output(mlxc.Float32, points)},
		},
		inputs: arrays{x, mlxc.Scalar[float32](angle)},
		check: func(t testing.TB, out arrays) {
			u := [3]float64{1. / 3, 2. / 3, 2. / 3}
			sin, cos := math.Sincos(angle)
			want := mlxtest.ByRow(v, 3, func(p []float64) []float64 {
				dot := u[0]*p[0] + u[1]*p[1] + u[2]*p[2]
				var y []float64
				for i := range 3 {
					j, k := (i+1)%3, (i+2)%3
					y = append(y, cos*p[i]+sin*(u[j]*p[k]-u[k]*p[j])+(1-cos)*dot*u[i])
				}
				return y
			})
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(mlxc.Float32, 16, 4))
			ones := make([]float64, points)
			for i := range ones {
				ones[i] = 1
			}
			mlxtest.RequireNear(t, ones, out[1], mlxtest.Rounded(mlxc.Float32, 32, 1))
		},
	})
}
