package suite

import (
	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// rmsNormResidual adds the normalized x to the residual r.
func rmsNormResidual() compare.Op {
	return compare.Op{Name: "rmsnorm-residual", Cases: rmsNormResidualNorm().cases()}
}

func rmsNormResidualNorm() norm {
	return norm{
		params: []string{"x", "r"}, vectors: []string{"w"}, outputs: []string{"y"}, own: true,
		forward: func(in []*oracle.Tensor, eps float64) []oracle.Tensor {
			return []oracle.Tensor{oracle.RMSNormResidual(*in[0], *in[1], in[2], eps)}
		},
		gradient: func(in []*oracle.Tensor, eps float64, ct []oracle.Tensor) []oracle.Tensor {
			dx, dr, dw := oracle.RMSNormResidualVJP(*in[0], in[2], eps, ct[0])
			return []oracle.Tensor{dx, dr, dw}
		},
		ours: func(in []*mlxc.Array, eps float32) []*mlxc.Array {
			return []*mlxc.Array{ops.RMSNormResidual(in[0], in[1], in[2], eps)}
		},
		mlx: func(in []*mlxc.Array, eps float32) []*mlxc.Array {
			return []*mlxc.Array{in[1].Add(mlxc.RMSNorm(in[0], in[2], eps))}
		},
	}
}
