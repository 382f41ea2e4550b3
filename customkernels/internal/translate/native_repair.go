package translate

import "github.com/mlxgrad/mlxgrad/customkernels/internal/msl"

// Repairs holds lines of a text in which the compiler rejects constructs that Metal accepts.
type Repairs struct {
	Conditionals []int // conditional operators without a common type
	Constants    []int // constexpr functions and variables whose value the compiler cannot compute
}

// variableConstants removes constexpr from the functions and variables of program scope that contain the lines. Their
// values are then computed when the kernel runs.
func (h *rewriter) variableConstants(lines []int) {
	for _, line := range lines {
		for _, it := range h.items {
			if it.Kind == msl.ClassItem || h.Tokens[it.First].Line > line || h.Tokens[it.Last].Line < line {
				continue
			}
			for i := it.First; i < it.Last && i != it.Open; i++ {
				if h.Tokens[i].Is("constexpr") {
					h.drop(h.Tokens[i])
				}
			}
		}
	}
}
