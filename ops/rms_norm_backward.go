package ops

import (
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var rmsNormKernels = normKernels{
	shaders: newShaderFile("rms_norm_backward.metal"), name: "rms_norm_backward", partial: "partial_dw",
	maxThreads: 1024, statisticsThreads: 1024, statistics: 2,
}

// rmsNormBackward returns dx, and dweight or nil for a nil weight.
func rmsNormBackward(on target, x, weight, dy *mlxc.Array, eps float32) []*mlxc.Array {
	return rmsNormBackwardWithSum(on, x, weight, dy, nil, eps)
}

// rmsNormBackwardWithSum adds dh, a cotangent of x itself, to the dx of rmsNormBackward. A nil dh adds nothing.
func rmsNormBackwardWithSum(on target, x, weight, dy, dh *mlxc.Array, eps float32) []*mlxc.Array {
	if x.Size() == 0 {
		return zerosLike(x, weight)
	}
	n := newNormGradient(x, weight, dy, eps)
	defer n.free()
	sum := n.dy // not read
	if dh != nil {
		sum = dh.AsType(x.DType())
		defer sum.Free()
	}
	n.operands = append(n.operands, sum)
	return rmsNormKernels.backward(on, n, hasSumArg(dh != nil), weight)
}
