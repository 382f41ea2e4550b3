package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// transposeCases returns cases of several numbers of matrices, rows and columns.
//
// The ragged cases for the kernels with tiles and blocks have:
//   - whole and short vectors of each size, in whole and short tiles
//   - rows and columns of several tiles
//   - whole blocks, in all dtypes or in float32 alone
//
// The ragged cases for transpose_2d_direct have:
//   - single elements, and an array of fewer than eight elements
//   - threads whose elements end inside a row or continue in the next matrix
func transposeCases(set CaseSet) []launchCase {
	shapes := [][3]int{
		{2, 37, 129},
		{1, 96, 128},
		{1, 130, 70},
		{3, 36, 100},
		{1, 1, 1},
		{1, 3, 2},
		{70, 2, 3},
		{2, 15, 129},
		{1, 1031, 1},
		{2, 523, 3},
	}
	if set == TypicalCases {
		shapes = [][3]int{{1, 512, 1024}, {8, 128, 64}, {1, 500, 1001}, {2, 4096, 3}}
	}
	var cases []launchCase
	for _, s := range shapes {
		cases = append(cases, launchCase{
			name: fmt.Sprintf("%d of %dx%d", s[0], s[1], s[2]),
			run: func(on target, dtype mlxc.DType) {
				transpose(on, mlxc.RandomNormal(mlxc.RandomKey(1), dtype, s[0], s[1], s[2]))
			},
		})
	}
	return cases
}
