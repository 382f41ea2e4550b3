// Package suite has the operations of this project with the cases in which package compare judges their gradients and
// package bench times them.
//
// Each operation has a file and a line in [Ops]. The file has a function that builds the [compare.Op] from the oracle,
// our function and MLX's. The oracle's float64 formulas are in package oracle.
package suite

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/compare"
)

// Ops returns the operations of this project in the order of reports. They and their cases depend on the current device.
func Ops() []compare.Op {
	ops := []compare.Op{
		rmsNorm(),
		rmsNormSeparate(),
		layerNorm(),
		layerNormSeparate(),
		rmsNormResidual(),
		addRMSNorm(),
		softmax(),
		transpose2D(),
		embedding(),
		embeddingSparse(),
		crossEntropy(),
		linearCrossEntropy(),
		matMul(),
		attention(),
		causalAttention(),
		gatedDeltaRule(),
		ssmScan(),
	}
	// An operation without cases has no kernel on this device.
	return slices.DeleteFunc(ops, func(op compare.Op) bool { return len(op.Cases) == 0 })
}
