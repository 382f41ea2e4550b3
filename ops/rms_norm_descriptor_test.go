package ops

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

var _ = describe(descriptor{
	operations: []string{"rmsnorm", "rmsnorm_separate", "rmsnorm_residual", "add_rmsnorm"},
	kernels: []kernelTest{
		{name: "rms_norm_forward", unused: onlyOn(mlxc.BackendCPU), variants: forwardVariants},
		{name: "rms_norm_backward", variants: fusedNormVariants},
		{name: "rms_norm_backward_statistics", variants: statisticsVariants},
		{name: "rms_norm_backward_columns", variants: columnsVariants},
		{name: "rms_norm_compute_rms_inv", variants: rowVariants},
		{name: "rms_norm_backward_dx", variants: rowVariants},
		{name: "rms_norm_backward_dw", variants: columnSumVariants},
		{name: "rms_norm_residual", variants: rowVariants},
		{name: "add_rms_norm", variants: rowVariants},
	},
	traffic: func() []trafficCase {
		residual := func(kernel string, outputs int) func(on target, in rowInputs) {
			return func(on target, in rowInputs) {
				residualForward(on, kernel, outputs, []*mlxc.Array{in.x, in.dy, in.weight}, caseEps)
			}
		}
		return slices.Concat(
			rowTraffic("RMSNorm backward", 3, [3]float64{1.10, 1.35, 1.75}, func(on target, in rowInputs) {
				rmsNormBackward(on, in.x, in.weight, in.dy, caseEps)
			}),
			rowTraffic("AddRMSNorm backward", 4, [3]float64{1.10, 1.35, 1.75}, func(on target, in rowInputs) {
				rmsNormBackwardWithSum(on, in.x, in.weight, in.dy, in.normal(4, in.x.Shape()...), caseEps)
			}),
			rowTraffic("RMSNorm backward, separate", 3, [3]float64{2.05, 2.05, 3.05}, func(on target, in rowInputs) {
				rmsNormBackwardSeparate(on, in.x, in.weight, in.dy, caseEps)
			}),
			rowTraffic("RMSNormResidual forward", 3, [3]float64{1.10, 1.10, 1.75}, residual("rms_norm_residual", 1)),
			rowTraffic("AddRMSNorm forward", 4, [3]float64{1.10, 1.10, 1.75}, residual("add_rms_norm", 2)),
		)
	},
	gradients: func() []gradientBench {
		rmsNorm := func(f func(x, w *mlxc.Array, eps float32) *mlxc.Array) mlxc.Func { return norm(true, benchEps, f) }
		weighted := func(dtype mlxc.DType, s []int) (primals, others arrays) { return normals(dtype, s, s[1:]), nil }
		residual := func(dtype mlxc.DType, s []int) (primals, others arrays) { return normals(dtype, s, s, s[1:]), nil }
		return []gradientBench{
			{"RMSNorm", rowBenchShapes, weighted, rmsNorm(RMSNorm), rmsNorm(mlxc.RMSNorm)},
			{"RMSNormSeparate", rowBenchShapes, weighted, rmsNorm(rmsNormSeparate), rmsNorm(mlxc.RMSNorm)},
			{
				"RMSNormResidual", rowBenchShapes, residual,
				func(args arrays) arrays { return arrays{RMSNormResidual(args[0], args[1], args[2], benchEps)} },
				func(args arrays) arrays { return arrays{args[1].Add(mlxc.RMSNorm(args[0], args[2], benchEps))} },
			},
			{
				"AddRMSNorm", rowBenchShapes, residual,
				func(args arrays) arrays {
					sum, norm := AddRMSNorm(args[0], args[1], args[2], benchEps)
					return arrays{sum, norm}
				},
				func(args arrays) arrays {
					sum := args[0].Add(args[1])
					return arrays{sum, mlxc.RMSNorm(sum, args[2], benchEps)}
				},
			},
		}
	},
	builds: func() []buildBench {
		x, w := normal(1, mlxc.Float32, 8, 64), normal(2, mlxc.Float32, 64)
		return []buildBench{
			{"RMSNorm", norm(true, benchEps, RMSNorm), arrays{x, w}, arrays{x}},
			{"RMSNorm/mlx", norm(true, benchEps, mlxc.RMSNorm), arrays{x, w}, arrays{x}},
			{
				"RMSNormResidual",
				func(a arrays) arrays { return arrays{RMSNormResidual(a[0], a[1], a[2], benchEps)} },
				arrays{x, x, w},
				arrays{x},
			},
			{
				"AddRMSNorm",
				func(a arrays) arrays { sum, y := AddRMSNorm(a[0], a[1], a[2], benchEps); return arrays{sum, y} },
				arrays{x, x, w},
				arrays{x, x},
			},
		}
	},
})
