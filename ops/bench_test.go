package ops

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A gradientBench computes the value and the gradients of an operation, by this package and by MLX, on random inputs.
type gradientBench struct {
	name   string
	shapes [][]int
	// inputs returns the primals, which have gradients, and the operands after them.
	inputs       func(dtype mlxc.DType, shape []int) (primals, others arrays)
	ours, theirs mlxc.Func
}

// rowBenchShapes are shapes, rows × width, of 2²⁰ and 2²² elements, which are 4 and 16 MiB in float32. Their rows have
// the width of a head, of a hidden state, and of more than a threadgroup holds.
var rowBenchShapes = [][]int{{8192, 128}, {256, 4096}, {32768, 128}, {1024, 4096}, {256, 16384}}

const benchEps = 1e-5

// normals returns random arrays of the shapes.
func normals(dtype mlxc.DType, shapes ...[]int) arrays {
	var made arrays
	for i, s := range shapes {
		made = append(made, normal(uint64(i+1), dtype, s...))
	}
	return made
}

// onePrimal is the inputs function of operations with one operand.
func onePrimal(dtype mlxc.DType, shape []int) (primals, others arrays) {
	return normals(dtype, shape), nil
}

// BenchmarkGradients measures values and gradients of every operation, by this package and by MLX in turn. It reports
// the best times, which other processes disturb least, and their ratio, MLX's time divided by ours.
func BenchmarkGradients(b *testing.B) {
	for _, c := range collect(func(d descriptor) func() []gradientBench { return d.gradients }) {
		for _, dtype := range gradientDTypes {
			for _, shape := range c.shapes {
				name := fmt.Sprintf("%s/%v/%v", c.name, dtype, strings.Trim(fmt.Sprint(shape), "[]"))
				b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
					mlxc.WithScope(func() { c.run(b, dtype, shape) })
				})
			}
		}
	}
}

func (c gradientBench) run(b *testing.B, dtype mlxc.DType, shape []int) {
	primals, others := c.inputs(dtype, shape)
	var cotangents arrays
	for i, y := range c.ours(slices.Concat(primals, others)) {
		dy := mlxc.Ones(y.DType()) // a loss
		if y.NDim() > 0 {
			dy = normal(uint64(i+10), y.DType(), y.Shape()...)
		}
		cotangents = append(cotangents, dy)
	}
	require.NoError(b, mlxc.Eval(slices.Concat(primals, others, cotangents)...))
	timeOf := func(f mlxc.Func) time.Duration {
		start := time.Now()
		mlxc.WithScope(func() {
			withOthers := func(args arrays) arrays { return f(slices.Concat(args, others)) }
			values, grads, err := mlxc.VJP(withOthers, primals, cotangents)
			for _, g := range grads {
				values = append(values, g.Contiguous()) // MLX's gradient may be a view of dy
			}
			if err == nil {
				err = mlxc.Eval(values...)
			}
			require.NoError(b, err)
		})
		return time.Since(start)
	}
	timeOf(c.ours)
	timeOf(c.theirs)
	var ours, theirs []time.Duration
	for b.Loop() {
		ours, theirs = append(ours, timeOf(c.ours)), append(theirs, timeOf(c.theirs))
	}
	best := func(times []time.Duration) float64 { return slices.Min(times).Seconds() * 1e3 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(best(ours), "ms/ours")
	b.ReportMetric(best(theirs), "ms/MLX")
	b.ReportMetric(best(theirs)/best(ours), "MLX÷ours")
}
