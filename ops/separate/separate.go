// Package separate has norms whose gradients take three kernels each. They compute the functions and gradients of
// [ops.RMSNorm] and [ops.LayerNorm], but move up to twice the memory. They exist to measure the gain of fusing the
// kernels.
package separate

import (
	"github.com/mlxgrad/mlxgrad/mlxc"
	_ "github.com/mlxgrad/mlxgrad/ops" // sets the functions of package norms
	"github.com/mlxgrad/mlxgrad/ops/internal/norms"
)

// RMSNorm is [ops.RMSNorm] with one kernel each for r = rsqrt(mean(x²)+eps) of every row, for dx and for dweight. r is
// kept in float32. The gradient moves twice the memory of the fused one.
func RMSNorm(x, weight *mlxc.Array, eps float32) *mlxc.Array {
	return norms.RMSNormSeparate(x, weight, eps)
}

// LayerNorm is [ops.LayerNorm] with one kernel for dx and the statistics μ and r of every row, which are kept in
// float32, one for partial sums of dweight and dbias over groups of rows, and one that adds the partial sums. The
// gradient moves 5/3 of the memory of the fused one.
func LayerNorm(x, weight, bias *mlxc.Array, eps float32) *mlxc.Array {
	return norms.LayerNormSeparate(x, weight, bias, eps)
}
