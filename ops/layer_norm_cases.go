package ops

import (
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func layerNormCases(set CaseSet) []launchCase {
	return biasCases(set, func(on target, x, weight, bias, dy *mlxc.Array, eps float32) []*mlxc.Array {
		layerNormForward(on, x, weight, bias, eps)
		return layerNormBackward(on, x, weight, bias, dy, eps)
	})
}

// layerNormSeparateCases includes a case with enough rows for several threadgroups. layer_norm_bwd_gamma_reduce adds
// their partial sums.
func layerNormSeparateCases(set CaseSet) []launchCase {
	cases := biasCases(set, layerNormBackwardSeparate)
	if set == TypicalCases {
		cases = append(cases, rowCase(1024, 128, "", func(on target, in rowInputs) {
			layerNormBackwardSeparate(on, in.x, in.weight, in.normal(4, 128), in.dy, caseEps)
		}))
	}
	return cases
}

// biasCases returns the cases of a layer norm: rows with a bias; rows without one, in a shape for the fused kernel and
// in a shape for the kernels of wide rows; and rows whose mean is far from zero, or far from the first element.
func biasCases(
	set CaseSet,
	backward func(on target, x, weight, bias, dy *mlxc.Array, eps float32) []*mlxc.Array,
) []launchCase {
	run := func(on target, in rowInputs) {
		bias := in.normal(4, in.x.Dim(-1))
		backward(on, in.x, in.weight, bias, in.dy, caseEps)
	}
	cases := rowCases(set, run)
	if set != RaggedCases {
		return cases
	}
	for _, c := range rowCases(set, func(on target, in rowInputs) {
		backward(on, in.x, in.weight, nil, in.dy, caseEps)
	}) {
		if strings.HasPrefix(c.name, "37x129") || strings.HasPrefix(c.name, "3x8209") {
			c.name += ", no bias"
			cases = append(cases, c)
		}
	}
	far := func(from int) func(on target, in rowInputs) {
		return func(on target, in rowInputs) {
			columns := mlxc.Arange(mlxc.Float32, 0, float64(in.x.Dim(-1)), 1)
			selected := columns.GreaterEqual(mlxc.Scalar(float32(from))).AsType(mlxc.Float32)
			in.x = in.x.Add(selected.MulScalar(100).AsType(in.x.DType()))
			run(on, in)
		}
	}
	return append(cases, rowCase(37, 129, ", far mean", far(0)), rowCase(2, 16400, ", far mean", far(1)))
}
