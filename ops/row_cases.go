package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// rowShapes returns the shapes, rows × width, in which row kernels are checked.
//
// The ragged shapes have:
//   - one element
//   - a weight of fewer than eight elements, which MLX declares in the constant address space
//   - a short last vector
//   - several simdgroups with a short last one
//   - whole vectors only, so that the next element is out of bounds
//   - rows wider than a threadgroup holds on a CPU and on a GPU, in whole vectors and with a short last vector
//   - more rows than threadgroups of a kernel with partial sums, and several simdgroups per threadgroup, so that
//     threadgroups reuse their memory
func rowShapes(set CaseSet) [][2]int {
	if set == TypicalCases {
		return [][2]int{{64, 1024}, {4, 16384}}
	}
	return [][2]int{{1, 1}, {3, 7}, {37, 129}, {6, 128}, {5, 4099}, {3, 8209}, {2, 16400}, {1031, 260}}
}

// rowInputs holds the random inputs of a case. The weight may be nil.
type rowInputs struct {
	x, dy, weight *mlxc.Array
	normal        func(seed uint64, shape ...int) *mlxc.Array // makes further inputs
}

// rowCases returns the cases of an operation in all shapes, and in two of them without a weight.
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

// rowCase returns the case of an operation in a shape. The suffix is appended to the case's name.
func rowCase(rows, width int, suffix string, run func(on target, in rowInputs)) launchCase {
	return launchCase{name: fmt.Sprintf("%dx%d%s", rows, width, suffix), run: func(on target, dtype mlxc.DType) {
		normal := func(seed uint64, shape ...int) *mlxc.Array {
			return mlxc.RandomNormal(mlxc.RandomKey(seed), dtype, shape...)
		}
		run(on, rowInputs{
			x: normal(1, rows, width), dy: normal(2, rows, width), weight: normal(3, width), normal: normal,
		})
	}}
}

// caseEps is large enough that a wrong use of eps changes results noticeably.
const caseEps = 0.01
