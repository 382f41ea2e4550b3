package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// matMulCases returns products whose sides are below, at and above the multiples of 8 and the blocks of the kernel.
func matMulCases(set CaseSet) []launchCase {
	shapes := [][3]int{{1, 1, 1}, {7, 3, 35}, {37, 129, 65}, {70, 33, 131}, {8, 264, 40}}
	if set == TypicalCases {
		shapes = [][3]int{{128, 256, 384}}
	}
	var cases []launchCase
	for _, s := range shapes {
		rows, inner, columns := s[0], s[1], s[2]
		for layout, transposed := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
			cases = append(cases, launchCase{
				name: fmt.Sprintf("%dx%d by %dx%d%s", rows, inner, inner, columns,
					[]string{"", ", b transposed", ", a transposed", ", both transposed"}[layout]),
				run: func(on target, dtype mlxc.DType) {
					matrixProduct(on,
						randomMatrix(1, dtype, rows, inner, transposed[0]),
						randomMatrix(2, dtype, inner, columns, transposed[1]))
				},
			})
		}
	}
	return cases
}

func randomMatrix(seed uint64, dtype mlxc.DType, rows, columns int, transposed bool) matrix {
	if transposed {
		rows, columns = columns, rows
	}
	return matrix{normalOf(seed, dtype, rows, columns), transposed}
}
