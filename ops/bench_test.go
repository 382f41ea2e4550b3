package ops

import (
	"fmt"
	"math/rand/v2"
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

// normals makes random arrays of the shapes.
func normals(dtype mlxc.DType, shapes ...[]int) arrays {
	var made arrays
	for i, s := range shapes {
		made = append(made, normal(uint64(i+1), dtype, s...))
	}
	return made
}

func gradientBenches() []gradientBench {
	const eps = 1e-5
	weighted := func(dtype mlxc.DType, s []int) (primals, others arrays) { return normals(dtype, s, s[1:]), nil }
	biased := func(dtype mlxc.DType, s []int) (primals, others arrays) {
		return normals(dtype, s, s[1:], s[1:]), nil
	}
	residual := func(dtype mlxc.DType, s []int) (primals, others arrays) { return normals(dtype, s, s, s[1:]), nil }
	alone := func(dtype mlxc.DType, s []int) (primals, others arrays) { return normals(dtype, s), nil }
	classes := func(rows, classes int) *mlxc.Array {
		return mlxc.Arange(mlxc.Int32, 0, float64(rows), 1).Remainder(mlxc.Scalar(int32(classes)))
	}
	logits := func(dtype mlxc.DType, s []int) (primals, others arrays) {
		return normals(dtype, s), arrays{classes(s[0], s[1])}
	}
	// A table's rows and width, and the number of tokens.
	table := func(id func(rng *rand.Rand, rows int) uint32) func(mlxc.DType, []int) (primals, others arrays) {
		return func(dtype mlxc.DType, s []int) (primals, others arrays) {
			rng, ids := rand.New(rand.NewPCG(1, 2)), make([]uint32, s[2])
			for i := range ids {
				ids[i] = id(rng, s[0])
			}
			return normals(dtype, s[:2]), arrays{mlxc.FromSlice(ids)}
		}
	}
	zipf := func(rng *rand.Rand, rows int) uint32 {
		return uint32(rand.NewZipf(rng, 1.1, 1, uint64(rows-1)).Uint64())
	}
	uniform := func(rng *rand.Rand, rows int) uint32 { return rng.Uint32N(uint32(rows)) }
	lookUp := func(f func(weight, ids *mlxc.Array) *mlxc.Array) mlxc.Func {
		return func(args arrays) arrays { return arrays{f(args[0], args[1])} }
	}
	tables := [][]int{{8192, 128, 8192}, {32000, 128, 4096}, {4096, 1024, 4096}}

	rmsNorm := func(f func(x, w *mlxc.Array, eps float32) *mlxc.Array) mlxc.Func { return norm(true, eps, f) }
	layerNorm := func(f func(x, w, b *mlxc.Array, eps float32) *mlxc.Array) mlxc.Func {
		return affine(true, true, eps, f)
	}
	loss := func(cfg CrossEntropyConfig, f func(logits, targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array) mlxc.Func {
		return func(args arrays) arrays { return arrays{f(args[0], args[1], cfg)} }
	}
	all := CrossEntropyConfig{LabelSmoothing: 0.1, ZLoss: 1e-4}
	return []gradientBench{
		{"RMSNorm", rowBenchShapes, weighted, rmsNorm(RMSNorm), rmsNorm(mlxc.RMSNorm)},
		{"RMSNormSeparate", rowBenchShapes, weighted, rmsNorm(RMSNormSeparate), rmsNorm(mlxc.RMSNorm)},
		{"LayerNorm", rowBenchShapes, biased, layerNorm(LayerNorm), layerNorm(mlxc.LayerNorm)},
		{"LayerNormSeparate", rowBenchShapes, biased, layerNorm(LayerNormSeparate), layerNorm(mlxc.LayerNorm)},
		{
			"RMSNormResidual", rowBenchShapes, residual,
			func(args arrays) arrays { return arrays{RMSNormResidual(args[0], args[1], args[2], eps)} },
			func(args arrays) arrays { return arrays{args[1].Add(mlxc.RMSNorm(args[0], args[2], eps))} },
		},
		{
			"AddRMSNorm", rowBenchShapes, residual,
			func(args arrays) arrays {
				sum, norm := AddRMSNorm(args[0], args[1], args[2], eps)
				return arrays{sum, norm}
			},
			func(args arrays) arrays {
				sum := args[0].Add(args[1])
				return arrays{sum, mlxc.RMSNorm(sum, args[2], eps)}
			},
		},
		{"Softmax", rowBenchShapes, alone, unary(Softmax), unary(mlxSoftmax)},
		{
			"Transpose2D",
			[][]int{{1024, 1024}, {1 << 18, 4}, {2048, 2048}, {1500, 2801}, {32, 512, 256}},
			alone,
			unary(Transpose2D), unary(mlxTranspose),
		},
		{"Embedding, zipf", tables, table(zipf), lookUp(Embedding), lookUp(take)},
		{"Embedding, uniform", tables, table(uniform), lookUp(Embedding), lookUp(take)},
		{
			"CrossEntropy",
			[][]int{{1024, 1000}, {32, 32000}, {4096, 1000}, {128, 32000}},
			logits, loss(CrossEntropyConfig{}, CrossEntropy),
			loss(CrossEntropyConfig{}, func(logits, targets *mlxc.Array, _ CrossEntropyConfig) *mlxc.Array {
				return mlxc.CrossEntropy(logits, targets).Mean()
			}),
		},
		{
			"CrossEntropy, smoothing and z-loss",
			[][]int{{1024, 1000}, {32, 32000}, {4096, 1000}, {128, 32000}},
			logits,
			loss(all, CrossEntropy), loss(all, crossEntropyOfMLX),
		},
		{
			"LinearCrossEntropy",
			[][]int{{256, 64, 4096}, {512, 64, 8192}},
			func(dtype mlxc.DType, s []int) (primals, others arrays) {
				return normals(dtype, s[:2], []int{s[2], s[1]}), arrays{classes(s[0], s[2])}
			},
			func(args arrays) arrays {
				return arrays{LinearCrossEntropy(args[0], args[1], args[2], CrossEntropyConfig{})}
			},
			func(args arrays) arrays {
				return arrays{linearLossOfMLX(CrossEntropyConfig{})(args[0], args[1], args[2])}
			},
		},
	}
}

// Values and gradients of every operation, ours and MLX's own by turns: the best times,
// from which what else runs on the machine is farthest, and their ratio, MLX's by ours.
func BenchmarkGradients(b *testing.B) {
	for _, c := range gradientBenches() {
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
