package suite

import (
	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
	"github.com/mlxgrad/mlxgrad/ops/separate"
)

func layerNorm() compare.Op {
	return compare.Op{Name: "layernorm", Cases: layerNormOf(ops.LayerNorm).cases()}
}

// layerNormSeparate is the same function with separate gradient kernels for dx and for dw and db.
func layerNormSeparate() compare.Op {
	return compare.Op{Name: "layernorm-separate", Cases: layerNormOf(separate.LayerNorm).fewCases()}
}

func layerNormOf(ours func(x, w, b *mlxc.Array, eps float32) *mlxc.Array) norm {
	adapt := func(f func(x, w, b *mlxc.Array, eps float32) *mlxc.Array) func([]*mlxc.Array, float32) []*mlxc.Array {
		return func(in []*mlxc.Array, eps float32) []*mlxc.Array { return []*mlxc.Array{f(in[0], in[1], in[2], eps)} }
	}
	return norm{
		params: []string{"x"}, vectors: []string{"w", "b"}, outputs: []string{"y"},
		forward: func(in []*oracle.Tensor, eps float64) []oracle.Tensor {
			return []oracle.Tensor{oracle.LayerNorm(*in[0], in[1], in[2], eps)}
		},
		gradient: func(in []*oracle.Tensor, eps float64, ct []oracle.Tensor) []oracle.Tensor {
			dx, dw, db := oracle.LayerNormVJP(*in[0], in[1], eps, ct[0])
			return []oracle.Tensor{dx, dw, db}
		},
		ours: adapt(ours),
		mlx:  adapt(mlxc.LayerNorm),
		// Measured with MLX 0.32.2: 1030, 2049, 4095, 4097, 8193 fail in every dtype, 1028 and 4100 in half precision.
		// Rows of a multiple of 16 bytes, and of at most 1024 elements, are correct. A case has one answer for all
		// dtypes, so float32 is skipped in 1028 and 4100 too.
		unsafeOnCUDA: func(width int) string {
			if width > 1024 && width%8 != 0 {
				return "MLX's CUDA gradient accesses memory out of bounds in rows of more than 1024 elements that are no multiple of 16 bytes"
			}
			return ""
		},
	}
}
