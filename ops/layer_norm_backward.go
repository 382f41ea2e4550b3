package ops

import (
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// layerNormThreads is the size of the largest threadgroup of the layer norm's kernels that hold rows or their moments.
// For each of 8 columns a thread keeps x, dy, w, dw and db, one element more than in the RMS norm. These 40 registers
// and the temporaries do not fit the 52 registers per thread of a group of 1024 threads. They fit the 69 of a group of
// 768.
const layerNormThreads = 768

var layerNormKernels = normKernels{
	shaders: newShaderFile("layer_norm_backward.metal"), name: "layer_norm_backward", partial: "partial",
	maxThreads: layerNormThreads,
	// A thread holds the five moments of 16 rows (layer_norm.h): 80 registers.
	statisticsThreads: 512, statistics: 4,
}

// layerNormBackward returns dx, dweight and dbias, nil for a nil weight or bias.
func layerNormBackward(on target, x, weight, bias, dy *mlxc.Array, eps float32) []*mlxc.Array {
	if x.Size() == 0 {
		return zerosLike(x, weight, bias)
	}
	n := newNormGradient(x, weight, dy, eps)
	defer n.free()
	return layerNormKernels.backward(on, n, hasBiasArg(bias != nil), weight, bias)
}
