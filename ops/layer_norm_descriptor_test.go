package ops

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

var _ = describe(descriptor{
	operations: []string{"layernorm", "layernorm_separate"},
	kernels: []kernelTest{
		{name: "layer_norm_forward", unused: onlyOn(mlxc.BackendCPU), variants: forwardVariants},
		{name: "layer_norm_backward", variants: fusedNormVariants},
		{name: "layer_norm_backward_statistics", variants: statisticsVariants},
		{name: "layer_norm_backward_columns", variants: columnsVariants},
		{name: "layer_norm_bwd_input", variants: rowVariants},
		{name: "layer_norm_bwd_gamma_partial"},
		{name: "layer_norm_bwd_gamma_reduce", variants: columnSumVariants},
	},
	traffic: func() []trafficCase {
		return slices.Concat(
			rowTraffic("LayerNorm backward", 3, [3]float64{1.10, 1.35, 1.75}, func(on target, in rowInputs) {
				layerNormBackward(on, in.x, in.weight, in.weight, in.dy, caseEps)
			}),
			rowTraffic("LayerNorm backward, separate", 3, [3]float64{1.70, 1.70, 2.60}, func(on target, in rowInputs) {
				layerNormBackwardSeparate(on, in.x, in.weight, in.weight, in.dy, caseEps)
			}),
		)
	},
	gradients: func() []gradientBench {
		layerNorm := func(f func(x, w, b *mlxc.Array, eps float32) *mlxc.Array) mlxc.Func {
			return affine(true, true, benchEps, f)
		}
		biased := func(dtype mlxc.DType, s []int) (primals, others arrays) {
			return normals(dtype, s, s[1:], s[1:]), nil
		}
		return []gradientBench{
			{"LayerNorm", rowBenchShapes, biased, layerNorm(LayerNorm), layerNorm(mlxc.LayerNorm)},
			{"LayerNormSeparate", rowBenchShapes, biased, layerNorm(layerNormSeparate), layerNorm(mlxc.LayerNorm)},
		}
	},
	builds: func() []buildBench {
		x, w, b := normal(1, mlxc.Float32, 8, 64), normal(2, mlxc.Float32, 64), normal(3, mlxc.Float32, 64)
		return []buildBench{
			{"LayerNorm", affine(true, true, benchEps, LayerNorm), arrays{x, w, b}, arrays{x}},
			{"LayerNorm/mlx", affine(true, true, benchEps, mlxc.LayerNorm), arrays{x, w, b}, arrays{x}},
		}
	},
})
