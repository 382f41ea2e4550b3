package ops

import (
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// RMSNorm returns the root-mean-square norm over the last axis, x·rsqrt(mean(x²)+eps)·weight (Zhang and Sennrich, "Root
// Mean Square Layer Normalization", 2019), with this project's gradient. On a GPU, MLX computes the value. On a CPU, a
// faster kernel of this project does.
//
// x has shape (…,D) and is float32, float16 or bfloat16. weight has shape (D) and x's dtype; nil stands for ones. eps
// must be finite and not negative. The result has x's shape and dtype.
//
// With r = rsqrt(mean(x²)+eps) of a row, g = dy·weight and s = Σ g·x over the row, the gradient is
// dx = r·(g − x·s·r²/D) and dweight = Σ dy·x·r over the rows. One kernel reads x and dy once and computes both. Rows of
// more than 8192 elements (4096 on a CPU) are read twice.
func RMSNorm(x, weight *mlxc.Array, eps float32) *mlxc.Array {
	return rmsNorm("ops.RMSNorm", x, weight, eps, rmsNormBackward)
}

// rmsNorm implements RMSNorm with the given backward function.
func rmsNorm(op string, x, weight *mlxc.Array, eps float32,
	backward func(on target, x, weight, dy *mlxc.Array, eps float32) []*mlxc.Array,
) *mlxc.Array {
	key := normKey{op, eps}
	if y := recorded(key, x, weight); y != nil {
		return y[0]
	}
	if err := checkNorm(x, weight, eps); err != nil {
		return mlxc.InvalidArray(opError(op, err, x, weight))
	}
	if !kernelsAvailable(op) {
		return mlxc.RMSNorm(x, weight, eps)
	}
	return withGradient(key, []*mlxc.Array{x, weight},
		func(args []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{rmsNormForward(currentTarget(), args[0], args[1], eps)}
		},
		func(primals, cotangents, _ []*mlxc.Array) []*mlxc.Array {
			return backward(currentTarget(), primals[0], primals[1], cotangents[0], eps)
		})[0]
}
