package suite

import (
	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
	"github.com/mlxgrad/mlxgrad/ops/separate"
)

func rmsNorm() compare.Op {
	return compare.Op{Name: "rmsnorm", Cases: rmsNormOf(ops.RMSNorm).cases()}
}

// rmsNormSeparate is the same function with its gradient in three kernels.
func rmsNormSeparate() compare.Op {
	return compare.Op{Name: "rmsnorm-separate", Cases: rmsNormOf(separate.RMSNorm).fewCases()}
}

func rmsNormOf(ours func(x, w *mlxc.Array, eps float32) *mlxc.Array) norm {
	adapt := func(f func(x, w *mlxc.Array, eps float32) *mlxc.Array) func([]*mlxc.Array, float32) []*mlxc.Array {
		return func(in []*mlxc.Array, eps float32) []*mlxc.Array { return []*mlxc.Array{f(in[0], in[1], eps)} }
	}
	return norm{
		params: []string{"x"}, vectors: []string{"w"}, outputs: []string{"y"},
		forward: func(in []*oracle.Tensor, eps float64) []oracle.Tensor {
			return []oracle.Tensor{oracle.RMSNorm(*in[0], in[1], eps)}
		},
		gradient: func(in []*oracle.Tensor, eps float64, ct []oracle.Tensor) []oracle.Tensor {
			dx, dw := oracle.RMSNormVJP(*in[0], in[1], eps, ct[0])
			return []oracle.Tensor{dx, dw}
		},
		ours: adapt(ours),
		mlx:  adapt(mlxc.RMSNorm),
	}
}
