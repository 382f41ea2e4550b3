package customkernels

import (
	"math"
	"slices"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// addRowNorms: softmax and norms of rows.
func addRowNorms(c *corpus) {
	for _, d := range floatDTypes {
		c.addSoftmax(d, 3, 301, 96)
		c.addLayerNorm(d, 5, 131, 96)
		c.addMoments(d, 3, 207, 100)
	}
	c.addSoftmax(mlxc.Float32, 2, 5, 40) // threads without an element, a short simdgroup
	c.addLayerNorm(mlxc.Float32, 9, 8, 50)
	c.addMoments(mlxc.Float32, 2, 20, 33)
}

func softmax(row []float64) []float64 {
	m := slices.Max(row)
	y := make([]float64, len(row))
	sum := 0.0
	for i, x := range row {
		y[i] = math.Exp(x - m)
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
	return y
}

func (c *corpus) addSoftmax(d mlxc.DType, rows, width, threads int) {
	_, v := c.normal(d, rows, width)
	elements := make([]float32, len(v))
	for i := range v {
		elements[i] = float32(8 * v[i])
	}
	elements[1] = float32(math.Inf(-1)) // a masked element
	x, v := c.array(d, elements, rows, width)
	c.add(namedLaunch{
		name:   named("online_softmax", d, width),
		kernel: c.kernel("online_softmax", ""),
		launch: Launch{
			Grid: [3]int{threads, rows}, Threadgroup: [3]int{threads},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, rows, width)},
		},
		inputs: inputs(arrays{x}, uints(width)),
		check: func(t testing.TB, out arrays) {
			// exp turns an absolute error of its argument, which is up to 60, into a relative one.
			requireNear(t, byRow(v, width, softmax), out[0], bound{0x1p-25, 64*0x1p-24 + 1.01*roundoff(d)})
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
	x, v := c.normal(d, rows, width)
	w, vw := c.normal(d, width)
	b, vb := c.normal(d, width)
	c.add(namedLaunch{
		name:   named("layer_norm", d, width),
		kernel: c.kernel("layer_norm", ""),
		launch: Launch{
			Grid: [3]int{2 * threads}, Threadgroup: [3]int{threads}, // two groups for all rows
			Template: template("T", d), Outputs: []mlxc.Output{output(d, rows, width)},
		},
		inputs: inputs(arrays{x, w, b, mlxc.Scalar[float32](eps)}, uints(rows, width)),
		check: func(t testing.TB, out arrays) {
			want := byRow(v, width, func(row []float64) []float64 {
				mean, variance := meanAndVariance(row)
				y := make([]float64, width)
				for i := range y {
					y[i] = (row[i]-mean)/math.Sqrt(variance+eps)*vw[i] + vb[i]
				}
				return y
			})
			requireNear(t, want, out[0], rounded(d, 32, 12))
			// MLX's own, in f32: in f16 and bf16 it rounds between its steps.
			f := mlxc.Float32
			mlx := mlxc.LayerNorm(x.AsType(f), w.AsType(f), b.AsType(f), eps)
			requireNear(t, values(t, mlx), out[0], twice(rounded(d, 32, 12)))
		},
	})
}

func (c *corpus) addMoments(d mlxc.DType, rows, width, threads int) {
	x, v := c.normal(d, rows, width)
	c.add(namedLaunch{
		name:   named("row_moments", d, width),
		kernel: c.kernel("helpers", ""),
		launch: Launch{
			Grid: [3]int{threads, rows}, Threadgroup: [3]int{threads},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, rows, 2)},
		},
		inputs: inputs(arrays{x}, uints(width)),
		check: func(t testing.TB, out arrays) {
			want := byRow(v, width, func(row []float64) []float64 {
				mean, variance := meanAndVariance(row)
				return []float64{mean, variance}
			})
			requireNear(t, want, out[0], rounded(d, 64, 4))
		},
	})
}
