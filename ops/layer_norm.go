package ops

import (
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// LayerNorm returns the layer norm over the last axis, (x−mean(x))·rsqrt(var(x)+eps)·weight + bias (Ba, Kiros and
// Hinton, "Layer Normalization", 2016), with this project's gradient. On a GPU, MLX computes the value. On a CPU, a
// faster kernel of this project does.
//
// x has shape (…,D) and is float32, float16 or bfloat16. weight and bias have shape (D) and x's dtype; a nil weight
// stands for ones, a nil bias for zeros. eps must be finite and not negative. The result has x's shape and dtype. For a
// row with a value that is not finite, dx is NaN, and so is dweight.
//
// With μ the mean of a row, r = rsqrt(var(x)+eps), x̂ = (x−μ)·r and g = dy·weight, the gradient is
//
//	dx      = r·(g − mean(g) − x̂·mean(g·x̂))
//	dweight = Σ dy·x̂ over the rows
//	dbias   = Σ dy over the rows
//
// One kernel reads x and dy once and computes all three. Rows of more than 6144 elements (8192 on an NVIDIA GPU, 4096
// on a CPU) are read twice.
func LayerNorm(x, weight, bias *mlxc.Array, eps float32) *mlxc.Array {
	return layerNorm("ops.LayerNorm", x, weight, bias, eps, layerNormBackward)
}

// layerNorm implements LayerNorm with the given backward function.
func layerNorm(op string, x, weight, bias *mlxc.Array, eps float32,
	backward func(on target, x, weight, bias, dy *mlxc.Array, eps float32) []*mlxc.Array,
) *mlxc.Array {
	key := normKey{op, eps}
	if y := recorded(key, x, weight, bias); y != nil {
		return y[0]
	}
	err := checkNorm(x, weight, eps)
	if err == nil {
		err = checkVector("bias", bias, x)
	}
	if err != nil {
		return mlxc.InvalidArray(opError(op, err, x, weight, bias))
	}
	if !kernelsAvailable(op) {
		return mlxc.LayerNorm(x, weight, bias, eps)
	}
	return withGradient(key, []*mlxc.Array{x, weight, bias},
		func(args []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{layerNormForward(currentTarget(), args[0], args[1], args[2], eps)}
		},
		func(primals, cotangents, _ []*mlxc.Array) []*mlxc.Array {
			return backward(currentTarget(), primals[0], primals[1], primals[2], cotangents[0], eps)
		})[0]
}
