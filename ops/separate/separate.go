// Package separate has norms whose gradients take three kernels each. They compute the same functions and gradients as
// [ops.RMSNorm] and [ops.LayerNorm], but with up to twice the memory traffic. They exist to measure the gain of fusing
// the kernels. Arguments, errors and goroutine rules are the same as in package ops.
package separate

import (
	"github.com/mlxgrad/mlxgrad/mlxc"
	_ "github.com/mlxgrad/mlxgrad/ops" // sets the functions of package norms
	"github.com/mlxgrad/mlxgrad/ops/internal/norms"
)

// RMSNorm is [ops.RMSNorm] with three kernels for the gradient: one for r = rsqrt(mean(x²)+eps) of every row, one for
// dx and one for dweight. r is kept in float32. The gradient has twice the memory traffic of the fused one.
func RMSNorm(x, weight *mlxc.Array, eps float32) *mlxc.Array {
	return norms.RMSNormSeparate(x, weight, eps)
}

// LayerNorm is [ops.LayerNorm] with three kernels for the gradient. The first computes dx and the statistics μ and r of
// every row, which are kept in float32. The second computes partial sums of dweight and dbias over groups of rows. The
// third adds the partial sums. The gradient has 5/3 of the memory traffic of the fused one.
func LayerNorm(x, weight, bias *mlxc.Array, eps float32) *mlxc.Array {
	return norms.LayerNormSeparate(x, weight, bias, eps)
}
