package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

func mlxMatMul(args arrays) arrays { return arrays{args[0].MatMul(args[1])} }

func matMul(args arrays) arrays { return arrays{MatMul(args[0], args[1])} }

func matMulOperands(dtype mlxc.DType, s []int) (primals, others arrays) {
	return normals(dtype, []int{s[0], s[1]}, []int{s[1], s[2]}), nil
}

var _ = describe(descriptor{
	operations: []string{"matmul"},
	kernels: []kernelTest{{
		name:   "matrix_product",
		unused: onlyOn(mlxc.BackendCPU), // GPUs have MLX's products
		variants: func(l KernelLaunch) []KernelLaunch {
			if l.Case != "70x33 by 33x131" {
				return nil
			}
			return []KernelLaunch{l.variant(func(v *KernelLaunch) { // fewer groups than blocks
				v.Launch.Grid = [3]int{3}
				v.setTemplate("BLOCK_M", 16)
				v.setTemplate("BLOCK_N", 32)
				v.setTemplate("INNER", 16)
				v.setTemplate("WIDTH", 8)
			})}
		},
	}},
	gradients: func() []gradientBench {
		return []gradientBench{{"MatMul", [][]int{{512, 512, 512}, {512, 64, 192}}, matMulOperands, matMul, mlxMatMul}}
	},
	builds: func() []buildBench {
		operands, _ := matMulOperands(mlxc.Float32, []int{8, 64, 32})
		dy := arrays{normal(3, mlxc.Float32, 8, 32)}
		return []buildBench{{"MatMul", matMul, operands, dy}, {"MatMul/mlx", mlxMatMul, operands, dy}}
	},
})
