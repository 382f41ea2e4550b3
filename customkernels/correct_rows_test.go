package customkernels

import (
	"math"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// addRowNorms adds softmax and norms of rows.
func addRowNorms(c *corpus) {
	for _, d := range mlxtest.FloatDTypes {
		c.addSoftmax(d, 3, 301, 96)
		c.addLayerNorm(d, 5, 131, 96)
		c.addMoments(d, 3, 207, 100)
	}
	c.addSoftmax(mlxc.Float32, 2, 5, 40) // some threads have no element, and the last simdgroup is partial
	c.addLayerNorm(mlxc.Float32, 9, 8, 50)
	c.addMoments(mlxc.Float32, 2, 20, 33)
}

func (c *corpus) addSoftmax(d mlxc.DType, rows, width, threads int) {
	_, v := c.Normal(d, rows, width)
	elements := make([]float32, len(v))
	for i := range v {
		elements[i] = float32(8 * v[i])
	}
	elements[1] = float32(math.Inf(-1)) // a masked element
	x, v := c.Array(d, elements, rows, width)
	c.add(namedLaunch{
		name:   named("online_softmax", d, width),
		kernel: c.kernel("online_softmax", ""),
		launch: Launch{
			Grid: [3]int{threads, rows}, Threadgroup: [3]int{threads},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, rows, width)},
		},
		inputs: inputs(arrays{x}, uints(width)),
		check: func(t testing.TB, out arrays) {
			// exp turns the absolute error of its argument, which is at most 60, into a relative error.
			mlxtest.RequireNear(t, mlxtest.ByRow(v, width, mlxtest.Softmax), out[0], mlxtest.Bound{Absolute: 0x1p-25, Relative: 64*0x1p-24 + 1.01*mlxtest.Roundoff(d)})
		},
	})
}

func meanAndVariance(row []float64) (mean, variance float64) {
	for _, x := range row {
		mean += x / float64(len(row))
	}
	for _, x := range row {
		variance += (x - mean) * (x - mean) / float64(len(row))
	}
	return mean, variance
}

func (c *corpus) addLayerNorm(d mlxc.DType, rows, width, threads int) {
	const eps = 1e-5
	x, v := c.Normal(d, rows, width)
	w, vw := c.Normal(d, width)
	b, vb := c.Normal(d, width)
	c.add(namedLaunch{
		name:   named("layer_norm", d, width),
		kernel: c.kernel("layer_norm", ""),
		launch: Launch{
			Grid: [3]int{2 * threads}, Threadgroup: [3]int{threads}, // two groups for all rows
			Template: template("T", d), Outputs: []mlxc.Output{output(d, rows, width)},
		},
		inputs: inputs(arrays{x, w, b, mlxc.Scalar[float32](eps)}, uints(rows, width)),
		check: func(t testing.TB, out arrays) {
			want := mlxtest.ByRow(v, width, func(row []float64) []float64 {
				mean, variance := meanAndVariance(row)
				y := make([]float64, width)
				for i := range y {
					y[i] = (row[i]-mean)/math.Sqrt(variance+eps)*vw[i] + vb[i]
				}
				return y
			})
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(d, 32, 12))
			// MLX computes the reference in float32: in float16 and bfloat16 it rounds between its steps.
			f := mlxc.Float32
			mlx := mlxc.LayerNorm(x.AsType(f), w.AsType(f), b.AsType(f), eps)
			mlxtest.RequireNear(t, mlxtest.Values(t, mlx), out[0], twice(mlxtest.Rounded(d, 32, 12)))
		},
	})
}

func (c *corpus) addMoments(d mlxc.DType, rows, width, threads int) {
	x, v := c.Normal(d, rows, width)
	c.add(namedLaunch{
		name:   named("row_moments", d, width),
		kernel: c.kernel("helpers", ""),
		launch: Launch{
			Grid: [3]int{threads, rows}, Threadgroup: [3]int{threads},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, rows, 2)},
		},
		inputs: inputs(arrays{x}, uints(width)),
		check: func(t testing.TB, out arrays) {
			want := mlxtest.ByRow(v, width, func(row []float64) []float64 {
				mean, variance := meanAndVariance(row)
				return []float64{mean, variance}
			})
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(d, 64, 4))
		},
	})
}
