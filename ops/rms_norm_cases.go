package ops

import (
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func rmsNormCases(set CaseSet) []launchCase {
	return rowCases(set, func(on target, in rowInputs) {
		rmsNormForward(on, in.x, in.weight, caseEps)
		rmsNormBackward(on, in.x, in.weight, in.dy, caseEps)
	})
}

func rmsNormSeparateCases(set CaseSet) []launchCase {
	return rowCases(set, func(on target, in rowInputs) {
		rmsNormBackwardSeparate(on, in.x, in.weight, in.dy, caseEps)
	})
}

func rmsNormResidualCases(set CaseSet) []launchCase {
	return rowCases(set, func(on target, in rowInputs) {
		residualForward(on, "rms_norm_residual", 1, []*mlxc.Array{in.x, in.dy, in.weight}, caseEps)
	})
}

func addRMSNormCases(set CaseSet) []launchCase {
	return rowCases(set, func(on target, in rowInputs) {
		residualForward(on, "add_rms_norm", 2, []*mlxc.Array{in.x, in.dy, in.weight}, caseEps)
		dh := in.normal(4, in.x.Shape()...)
		rmsNormBackwardWithSum(on, in.x, in.weight, in.dy, dh, caseEps)
	})
}
