package customkernels

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// addLanguage adds kernels with operations as template arguments, idioms of other projects, and early returns.
func addLanguage(c *corpus) {
	for op := range 4 {
		for _, d := range mlxtest.FloatDTypes {
			c.addReduceRows(d, op, 5, 135, op == 3)
		}
	}
	c.addReduceRows(mlxc.Float32, 0, 3, 3, true)
	for _, d := range mlxtest.FloatDTypes {
		c.addIdioms(d, 3, 77)
	}
	for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16} {
		c.addTail(d, "tail_return", 75, "")
		c.addTail(d, "tail_reverse", 75, "")
	}
	c.addTail(mlxc.Float32, "tail_before_barrier", 45, sanitizer.FindingBarrierAfterExit)
}

func (c *corpus) addReduceRows(d mlxc.DType, op, rows, width int, root bool) {
	x, v := c.Uniform(d, 0.5, 1.5, rows, width)
	c.add(namedLaunch{
		name:   named("reduce_rows", d, []string{"sum", "product", "max", "squares"}[op], width),
		kernel: c.kernel("templates", ""),
		launch: Launch{
			Grid: [3]int{32 * rows}, Threadgroup: [3]int{96},
			Template: template("T", d, "op", op, "C", 4, "root", root),
			Outputs:  []mlxc.Output{output(d, rows)},
		},
		inputs: inputs(arrays{x}, uints(width)),
		check: func(t testing.TB, out arrays) {
			want := mlxtest.ByRow(v, width, func(row []float64) []float64 {
				sum, squares, product := 0.0, 0.0, 1.0
				for _, x := range row {
					sum, squares, product = sum+x, squares+x*x, product*x
				}
				r := []float64{sum, product, slices.Max(row), squares}[op]
				if root {
					r = math.Sqrt(r)
				}
				return []float64{r}
			})
			// All terms are positive, so each step adds one rounding relative to the result.
			mlxtest.RequireNear(t, want, out[0], mlxtest.Bound{Absolute: 0x1p-25, Relative: float64(width)*0x1p-24 + 1.01*mlxtest.Roundoff(d)})
		},
	})
}

func (c *corpus) addIdioms(d mlxc.DType, rows, width int) {
	x, v := c.Normal(d, rows, width)
	c.add(namedLaunch{
		name:   named("idioms", d),
		kernel: c.kernel("idioms", ""),
		launch: Launch{
			Grid: [3]int{32 * rows}, Threadgroup: [3]int{64}, Template: template("T", d),
			Outputs: []mlxc.Output{output(mlxc.Float32, rows, 3)},
		},
		inputs: arrays{x, mlxc.Scalar(uint64(width))},
		check: func(t testing.TB, out arrays) {
			want := mlxtest.ByRow(v, width, func(row []float64) []float64 {
				sum, squares := 0.0, 0.0
				for _, x := range row {
					sum, squares = sum+x, squares+x*x
				}
				return []float64{sum, slices.Max(row), squares}
			})
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(mlxc.Float32, 2*width, 4))
		},
	})
}

func (c *corpus) addTail(d mlxc.DType, kernel string, size int, finding sanitizer.FindingKind) {
	x, v := c.Normal(d, size)
	grid := 128
	if kernel == "tail_before_barrier" {
		grid = 64
	}
	c.add(namedLaunch{
		name:    named(kernel, d),
		finding: finding,
		kernel:  c.kernel("tail_threads", kernel),
		launch: Launch{
			Grid: [3]int{grid}, Threadgroup: [3]int{64},
			Template: template("T", d), Outputs: []mlxc.Output{output(d, size)},
		},
		inputs: inputs(arrays{x}, uints(size)),
		check: func(t testing.TB, out arrays) {
			want := make([]float64, size)
			for i := range want {
				switch kernel {
				case "tail_return":
					want[i] = math.Abs(v[i])
				case "tail_reverse":
					first := i / 64 * 64
					want[i] = v[first+min(64, size-first)-1-(i-first)]
				default:
					want[i] = v[i] + v[size-1-i]
				}
			}
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(d, 1, 8))
		},
	})
}

// addConjugateGradients adds the three kernels of one file. The last check solves a linear system with them, with a
// hundred lazy launches in one graph.
func addConjugateGradients(c *corpus) {
	const size, threads, shift = 45, 33, 0.5
	v, x := c.Normal(mlxc.Float32, size)
	w, y := c.Normal(mlxc.Float32, size)
	apply := c.kernel("several", "apply_matrix")
	add := c.kernel("several", "add_scaled")
	norm := c.kernel("several", "square_norm")
	vector, number := output(mlxc.Float32, size), output(mlxc.Float32, 1)
	group := Launch{Grid: [3]int{threads}, Threadgroup: [3]int{threads}}
	applyLaunch, addLaunch, normLaunch := group, group, group
	applyLaunch.Outputs = []mlxc.Output{vector, number}
	addLaunch.Grid, addLaunch.Outputs = [3]int{size}, []mlxc.Output{vector}
	normLaunch.Outputs = []mlxc.Output{number}

	matrix := func(x []float64) []float64 {
		r := make([]float64, size)
		for i := range r {
			r[i] = (2 + shift) * x[i]
			if i > 0 {
				r[i] -= x[i-1]
			}
			if i+1 < size {
				r[i] -= x[i+1]
			}
		}
		return r
	}
	c.add(namedLaunch{
		name: "several/apply_matrix", kernel: apply, launch: applyLaunch,
		inputs: inputs(arrays{v, mlxc.Scalar[float32](shift)}, uints(size)),
		check: func(t testing.TB, out arrays) {
			want := matrix(x)
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(mlxc.Float32, 4, 10))
			mlxtest.RequireNear(t, mlxtest.MatMul(x, want, 1, 1, size, false), out[1], mlxtest.Rounded(mlxc.Float32, size, 100))
		},
	})
	c.add(namedLaunch{
		name: "several/add_scaled", kernel: add, launch: addLaunch,
		inputs: arrays{v, w, mlxc.Scalar[float32](2)},
		check: func(t testing.TB, out arrays) {
			want := make([]float64, size)
			for i := range want {
				want[i] = x[i] + 2*y[i]
			}
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(mlxc.Float32, 1, 10))
		},
	})
	c.add(namedLaunch{
		name: "several/square_norm", kernel: norm, launch: normLaunch,
		inputs: inputs(arrays{v}, uints(size)),
		check: func(t testing.TB, out arrays) {
			mlxtest.RequireNear(t, mlxtest.MatMul(x, x, 1, 1, size, false), out[0], mlxtest.Rounded(mlxc.Float32, size, 100))

			solution, r, p := mlxc.Zeros(mlxc.Float32, size), v, v
			rr := out[0].Reshape()
			for range 25 {
				o := apply.Launch(applyLaunch, p, mlxc.Scalar[float32](shift), mlxc.Scalar[uint32](size))
				a := rr.Div(o[1].Reshape())
				solution = add.Launch(addLaunch, solution, p, a)[0]
				r = add.Launch(addLaunch, r, o[0], a.Neg())[0]
				before := rr
				rr = norm.Launch(normLaunch, r, mlxc.Scalar[uint32](size))[0].Reshape()
				p = add.Launch(addLaunch, r, p, rr.Div(before))[0]
			}
			s := mlxtest.Values(t, solution)
			require.Len(t, s, size)
			// With κ ≤ 9, each iteration reduces the residual by (√κ−1)/(√κ+1) = 1/2, down to rounding errors.
			for i, b := range matrix(s) {
				require.InDelta(t, x[i], b, 1e-5)
			}
		},
	})
}
