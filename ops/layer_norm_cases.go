package ops

import (
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func layerNormCases(set CaseSet) []launchCase {
	return biasCases(set, layerNormBackward)
}

// layerNormSeparateCases have rows for several groups too, whose sums are added up.
func layerNormSeparateCases(set CaseSet) []launchCase {
	cases := biasCases(set, layerNormBackwardSeparate)
	if set == TypicalCases {
		cases = append(cases, rowCase(1024, 128, "", func(on target, in rowInputs) {
			layerNormBackwardSeparate(on, in.x, in.weight, in.normal(4, 128), in.dy, caseEps)
		}))
	}
	return cases
}

// biasCases are the cases of rows with a bias, without one in a shape for each path
// of the fused gradient, and with a mean that is far from what sums may be about: from
// zero, and from a long row's first element.
func biasCases(set CaseSet,
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
			added := columns.GreaterEqual(mlxc.Scalar(float32(from))).AsType(mlxc.Float32).Mul(mlxc.Scalar[float32](100))
			in.x = in.x.Add(added.AsType(in.x.DType()))
			run(on, in)
		}
	}
	return append(cases, rowCase(37, 129, ", far mean", far(0)), rowCase(2, 16400, ", far mean", far(1)))
}
