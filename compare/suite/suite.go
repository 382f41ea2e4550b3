// Package suite has the operations of this project with the cases in which package compare judges their gradients and
// package bench times them.
//
// Each operation is a file that returns its [compare.Op] from its oracle, our function and MLX's, and has a line in
// [Ops]. Its float64 formulas are in package oracle.
package suite

import "github.com/mlxgrad/mlxgrad/compare"

// Ops returns the operations of this project in the order of reports.
func Ops() []compare.Op {
	return []compare.Op{
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
		attention(),
		causalAttention(),
	}
}
