package ops

import (
	"fmt"
	"math/rand/v2"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

var _ = describe(descriptor{
	operations: []string{"embedding"},
	kernels: []kernelTest{
		{name: "embedding", variants: embeddingVariants},
		{name: "embedding_sorted_keys", unused: onlyOn(mlxc.BackendCPU)}, // MLX sorts on a GPU
		{name: "embedding_keys", variants: embeddingVariants},
		{name: "embedding_runs", variants: embeddingVariants},
		{name: "embedding_backward_partial", variants: embeddingVariants},
		{name: "embedding_backward", variants: embeddingVariants},
	},
	traffic:   embeddingTraffic,
	gradients: embeddingBenches,
	builds: func() []buildBench {
		ids := mlxc.FromSlice([]int32{1, 2, 3, 4, 5, 6, 7, 8})
		lookUp := func(table *mlxc.Array) *mlxc.Array { return Embedding(table, ids) }
		table, dy := normal(4, mlxc.Float32, 32, 64), normal(1, mlxc.Float32, 8, 64)
		return []buildBench{{"Embedding", unary(lookUp), arrays{table}, arrays{dy}}}
	},
})

// embeddingVariants returns variants with fewer and with more threads than the kernel has work for, and with too few for
// a row.
func embeddingVariants(l KernelLaunch) (list []KernelLaunch) {
	if l.Case != "37 of 13x129" && l.Case != "1031 of 2x70" {
		return nil
	}
	for _, size := range [][2]int{{23, 7}, {1201, 65}} {
		list = append(list, l.variant(func(v *KernelLaunch) {
			v.Launch.Grid, v.Launch.Threadgroup = [3]int{size[0]}, [3]int{size[1]}
		}))
	}
	return list
}

// embeddingTraffic returns cases with fewer tokens than table rows, with one id for all tokens, with tokens that share
// ids, and with different ids.
func embeddingTraffic() (cases []trafficCase) {
	for _, s := range [][3]int{{128, 1024, 1024}, {1024, 1, 512}, {512, 64, 512}, {512, 512, 512}} {
		tokens, vocabulary, width := s[0], s[1], s[2]
		ids := func() *mlxc.Array {
			return mlxc.Arange(mlxc.Uint32, 0, float64(tokens), 1).Remainder(mlxc.Scalar(uint32(vocabulary)))
		}
		shape := fmt.Sprintf("%d of %dx%d", tokens, vocabulary, width)
		cases = append(cases, trafficCase{
			name: "Embedding forward, " + shape,
			run: func(on target, dtype mlxc.DType) {
				embeddingForward(on, mlxc.RandomNormal(mlxc.RandomKey(1), dtype, vocabulary, width), ids())
			},
			compulsory: 2 * tokens * width,
			limit:      1.10,
		}, trafficCase{
			name: "Embedding backward, " + shape,
			run: func(on target, dtype mlxc.DType) {
				embeddingBackward(on, mlxc.RandomNormal(mlxc.RandomKey(1), dtype, tokens, width), ids(), vocabulary)
			},
			compulsory: (tokens + vocabulary) * width,
			limit:      1.10,
		})
	}
	return cases
}

// embeddingBenches returns benchmarks. A shape has the number of table rows, the width and the number of tokens.
func embeddingBenches() []gradientBench {
	table := func(id func(rng *rand.Rand, rows int) uint32) func(mlxc.DType, []int) (primals, others arrays) {
		return func(dtype mlxc.DType, s []int) (primals, others arrays) {
			rng, ids := rand.New(rand.NewPCG(1, 2)), make([]uint32, s[2])
			for i := range ids {
				ids[i] = id(rng, s[0])
			}
			return normals(dtype, s[:2]), arrays{mlxc.FromSlice(ids)}
		}
	}
	zipf := table(func(rng *rand.Rand, rows int) uint32 {
		return uint32(rand.NewZipf(rng, 1.1, 1, uint64(rows-1)).Uint64())
	})
	uniform := table(func(rng *rand.Rand, rows int) uint32 { return rng.Uint32N(uint32(rows)) })
	lookUp := func(f func(weight, ids *mlxc.Array) *mlxc.Array) mlxc.Func {
		return func(args arrays) arrays { return arrays{f(args[0], args[1])} }
	}
	shapes := [][]int{{8192, 128, 8192}, {32000, 128, 4096}, {4096, 1024, 4096}}
	return []gradientBench{
		{"Embedding, zipf", shapes, zipf, lookUp(Embedding), lookUp(take)},
		{"Embedding, uniform", shapes, uniform, lookUp(Embedding), lookUp(take)},
	}
}
