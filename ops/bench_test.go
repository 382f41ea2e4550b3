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

// A gradientBench is an operation, ours and MLX's own, whose value and gradients are
// computed of random inputs.
type gradientBench struct {
	name   string
	shapes [][]int
	// inputs makes what there are gradients of, and what comes after it.
	inputs       func(dtype mlxc.DType, shape []int) (primals, others arrays)
	ours, theirs mlxc.Func
}

// rowBenchShapes are rows × width of 2²⁰ and 2²² elements, 4 and 16 MiB in float32: rows that
// are narrow, such as models have, and wide.
var rowBenchShapes = [][]int{{8192, 128}, {256, 4096}, {32768, 128}, {1024, 4096}, {256, 16384}}

const benchEps = 1e-5

// normals makes random arrays of the shapes.
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

// Values and gradients of every operation, ours and MLX's own by turns: the best times,
// from which what else runs on the machine is farthest, and their ratio, MLX's by ours.
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
		dy := mlxc.Ones(y.DType()) // of a loss
		if y.NDim() > 0 {
			dy = normal(uint64(i+10), y.DType(), y.Shape()...)
		}
		cotangents = append(cotangents, dy)
	}
	require.NoError(b, mlxc.Eval(slices.Concat(primals, others, cotangents)...))
	timeOf := func(f mlxc.Func) time.Duration {
		start := time.Now()
		mlxc.WithScope(func() {
			values, grads, err := mlxc.VJP(func(args arrays) arrays { return f(slices.Concat(args, others)) }, primals, cotangents)
			for _, g := range grads {
				values = append(values, g.Contiguous()) // MLX's may be a view of dy
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
