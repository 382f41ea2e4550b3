package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// rowShapes are the shapes in which kernels that walk over rows are checked.
//
// Ragged: single elements; arrays below eight elements, which MLX declares
// differently; a short last pack in every thread; several simdgroups of which the
// last is short; whole packs only, so that one element more is outside; rows wider
// than a threadgroup holds on a host and on a GPU, there in whole packs and not; more
// rows than there are threadgroups in any geometry, so that threadgroups use their
// memory again, with several simdgroups.
func rowShapes(set CaseSet) [][2]int {
	if set == TypicalCases {
		return [][2]int{{64, 1024}, {4, 16384}}
	}
	return [][2]int{{1, 1}, {3, 7}, {37, 129}, {6, 128}, {5, 4099}, {3, 8209}, {2, 16400}, {1031, 260}}
}

// rowInputs are the random inputs of a case, of which weight may be nil; normal makes
// more.
type rowInputs struct {
	x, dy, weight *mlxc.Array
	normal        func(seed uint64, shape ...int) *mlxc.Array
}

// rowCases are the cases of run in all shapes, and in one without a weight.
func rowCases(set CaseSet, run func(on target, in rowInputs)) []launchCase {
	var cases []launchCase
	for _, s := range rowShapes(set) {
		cases = append(cases, rowCase(s[0], s[1], "", run))
	}
	if set == RaggedCases {
		for _, s := range [][2]int{{37, 129}, {3, 8209}} {
			cases = append(cases, rowCase(s[0], s[1], ", no weight", func(on target, in rowInputs) {
				in.weight = nil
				run(on, in)
			}))
		}
	}
	return cases
}

// rowCase is the case of run in a shape.
func rowCase(rows, width int, what string, run func(on target, in rowInputs)) launchCase {
	return launchCase{name: fmt.Sprintf("%dx%d%s", rows, width, what), run: func(on target, dtype mlxc.DType) {
		normal := func(seed uint64, shape ...int) *mlxc.Array {
			return mlxc.RandomNormal(mlxc.RandomKey(seed), dtype, shape...)
		}
		run(on, rowInputs{x: normal(1, rows, width), dy: normal(2, rows, width), weight: normal(3, width), normal: normal})
	}}
}

// caseEps is large enough that a mistake about it shows.
const caseEps = 0.01
