package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

var _ = describe(descriptor{
	operations: []string{"softmax"},
	kernels: []kernelTest{
		{name: "softmax_backward", variants: rowVariants},
		{
			name:   "softmax_forward",
			unused: onlyOn(mlxc.BackendCPU), // MLX's kernel is as fast on a GPU
			variants: func(l KernelLaunch) []KernelLaunch {
				return twoGroups(l, func(v *KernelLaunch, _ int) {
					v.setTemplate("VEC", 4) // as on a GPU
					v.setTemplate("VECS_PER_THREAD", 1)
				})
			},
		},
	},
	traffic: func() []trafficCase {
		return rowTraffic("Softmax backward", 3, [3]float64{1.05, 1.05, 1.05}, func(on target, in rowInputs) {
			softmaxBackward(on, in.x, in.dy)
		})
	},
	gradients: func() []gradientBench {
		return []gradientBench{{"Softmax", rowBenchShapes, onePrimal, unary(Softmax), unary(mlxSoftmax)}}
	},
	builds: func() []buildBench {
		x := arrays{normal(1, mlxc.Float32, 8, 64)}
		return []buildBench{
			{"Softmax", unary(Softmax), x, x},
			{"Softmax/mlx", unary(func(x *mlxc.Array) *mlxc.Array { return x.Softmax(-1) }), x, x},
		}
	},
})
