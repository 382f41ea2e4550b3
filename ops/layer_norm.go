package ops

import (
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// LayerNorm is the layer norm over the last axis,
// (x−mean(x))·rsqrt(var(x)+eps)·weight + bias, with this project's gradient.
//
// x has shape (…,D) and is float32, float16 or bfloat16. weight and bias have shape (D)
// and x's dtype; nil stands for ones and for zeros. eps must not be negative. The
// result has x's shape and dtype. A row with a value that is not finite has a gradient
// of NaN, and so has weight.
//
// With μ the mean of a row, r = rsqrt(var(x)+eps), x̂ = (x−μ)·r and g = dy·weight, the
// gradient is dx = r·(g − mean(g) − x̂·mean(g·x̂)), dweight = Σ dy·x̂ and dbias = Σ dy
// over the rows (Ba, Kiros and Hinton, "Layer Normalization", 2016). One kernel reads x
// and dy once and computes all three; rows wider than 6144 elements (4096 on a CPU) are
// read twice.
func LayerNorm(x, weight, bias *mlxc.Array, eps float32) *mlxc.Array {
	return layerNorm("ops.LayerNorm", x, weight, bias, eps, layerNormBackward)
}

// LayerNormSeparate is LayerNorm with the gradient in three kernels: one for dx, which
// keeps μ and r of every row in float32 for the second, which adds up dweight and dbias
// for groups of rows, and one that adds up the groups. It moves 5/3 of the memory, and
// is there to be compared.
func LayerNormSeparate(x, weight, bias *mlxc.Array, eps float32) *mlxc.Array {
	return layerNorm("ops.LayerNormSeparate", x, weight, bias, eps, layerNormBackwardSeparate)
}

func layerNorm(op string, x, weight, bias *mlxc.Array, eps float32,
	backward func(on target, x, weight, bias, dy *mlxc.Array, eps float32) []*mlxc.Array,
) *mlxc.Array {
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
	return withGradient([]*mlxc.Array{x, weight, bias},
		func(args []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{mlxc.LayerNorm(args[0], args[1], args[2], eps)}
		},
		func(primals, cotangents, _ []*mlxc.Array) []*mlxc.Array {
			return backward(currentTarget(), primals[0], primals[1], primals[2], cotangents[0], eps)
		})[0]
}
