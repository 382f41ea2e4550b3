package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// softmaxCases returns the cases of the row kernels, and one of unaligned rows that are wider than a threadgroup holds
// on any backend. The y of the backward kernel is normally distributed: the elements of a softmax of long rows are too
// small to show errors.
func softmaxCases(set CaseSet) []launchCase {
	shapes := rowShapes(set)
	if set == RaggedCases {
		shapes = append(shapes, [2]int{2, 16411})
	}
	var cases []launchCase
	for _, s := range shapes {
		cases = append(cases, launchCase{
			name: fmt.Sprintf("%dx%d", s[0], s[1]),
			run: func(on target, dtype mlxc.DType) {
				softmaxForward(on, mlxc.RandomNormal(mlxc.RandomKey(3), dtype, s[0], s[1]))
				softmaxBackward(on,
					mlxc.RandomNormal(mlxc.RandomKey(1), dtype, s[0], s[1]),
					mlxc.RandomNormal(mlxc.RandomKey(2), dtype, s[0], s[1]))
			},
		})
	}
	return cases
}
