package suite

import (
	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// addRMSNorm has two outputs: h, the sum of x and the residual r, and y, the norm of h.
func addRMSNorm() compare.Op {
	return compare.Op{Name: "add-rmsnorm", Cases: addRMSNormNorm().cases()}
}

func addRMSNormNorm() norm {
	return norm{
		params: []string{"x", "r"}, vectors: []string{"w"}, outputs: []string{"h", "y"}, own: true, summed: true,
		forward: func(in []*oracle.Tensor, eps float64) []oracle.Tensor {
			h, y := oracle.AddRMSNorm(*in[0], *in[1], in[2], eps)
			return []oracle.Tensor{h, y}
		},
		gradient: func(in []*oracle.Tensor, eps float64, ct []oracle.Tensor) []oracle.Tensor {
			dx, dr, dw := oracle.AddRMSNormVJP(*in[0], *in[1], in[2], eps, ct[0], ct[1])
			return []oracle.Tensor{dx, dr, dw}
		},
		ours: func(in []*mlxc.Array, eps float32) []*mlxc.Array {
			h, y := ops.AddRMSNorm(in[0], in[1], in[2], eps)
			return []*mlxc.Array{h, y}
		},
		mlx: func(in []*mlxc.Array, eps float32) []*mlxc.Array {
			h := in[0].Add(in[1])
			return []*mlxc.Array{h, mlxc.RMSNorm(h, in[2], eps)}
		},
	}
}
