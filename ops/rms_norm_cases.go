package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// rmsNormCases are launches of the kernels of RMSNorm's gradient.
//
// Ragged: single elements; arrays below eight elements, which MLX declares
// differently; a short last vector in every lane; several simdgroups of which the
// last is short; whole vectors only, so that one element more is outside; a row of
// many turns; more rows than there are threadgroups in any geometry, so that
// threadgroups use their memory again, with several simdgroups.
func rmsNormCases(set CaseSet) []launchCase {
	if set == TypicalCases {
		return []launchCase{rmsNormCase(64, 1024, true)}
	}
	return []launchCase{
		rmsNormCase(1, 1, true),
		rmsNormCase(3, 7, true),
		rmsNormCase(37, 129, true),
		rmsNormCase(37, 129, false),
		rmsNormCase(6, 128, true),
		rmsNormCase(5, 4099, true),
		rmsNormCase(4099, 130, true),
	}
}

func rmsNormCase(rows, width int, weighted bool) launchCase {
	name := fmt.Sprintf("%dx%d", rows, width)
	if !weighted {
		name += ", no weight"
	}
	return launchCase{name: name, run: func(on launcher, dtype mlxc.DType) {
		normal := func(seed uint64, shape ...int) *mlxc.Array {
			return mlxc.RandomNormal(mlxc.RandomKey(seed), dtype, shape...)
		}
		x, dy := normal(1, rows, width), normal(2, rows, width)
		var weight *mlxc.Array
		if weighted {
			weight = normal(3, width)
		}
		rmsNormBackward(on, x, weight, dy, 1e-5)
	}}
}
