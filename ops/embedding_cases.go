package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// embeddingCases returns cases of several numbers of tokens, numbers of table rows, and widths.
//
// The ragged cases have:
//   - single elements and arrays of fewer than eight elements
//   - short last vectors, and threads with fewer vectors than others
//   - rows wider than a CPU thread processes at once
//   - a last threadgroup with fewer threads
//   - runs that are shorter than a segment, fill one, or extend over several with tokens before and after them
//   - a table with many more rows than tokens
func embeddingCases(set CaseSet) []launchCase {
	shapes := [][3]int{{1, 1, 1}, {3, 2, 7}, {37, 13, 129}, {5, 3, 4099}, {384, 2, 300}, {1031, 2, 70}, {70, 600, 40}}
	if set == TypicalCases {
		shapes = [][3]int{{64, 1024, 1024}, {1024, 3, 1024}}
	}
	var cases []launchCase
	for _, s := range shapes {
		tokens, vocabulary, width := s[0], s[1], s[2]
		cases = append(cases, launchCase{
			name: fmt.Sprintf("%d of %dx%d", tokens, vocabulary, width),
			run: func(on target, dtype mlxc.DType) {
				normal := func(seed uint64, rows int) *mlxc.Array {
					return mlxc.RandomNormal(mlxc.RandomKey(seed), dtype, rows, width)
				}
				// All ids in turn, and one that is out of range.
				ids := mlxc.Arange(mlxc.Uint32, 0, float64(tokens), 1).Remainder(mlxc.Scalar(uint32(vocabulary + 1)))
				embeddingForward(on, normal(1, vocabulary), ids)
				embeddingBackward(on, normal(2, tokens), ids, vocabulary)
			},
		})
	}
	return cases
}
