package checker

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
)

// leavesEarly reports whether a thread may end before the end of its kernel: the kernel's body or a macro has a
// return. Without one, a thread that did not reach a barrier has skipped it.
func leavesEarly(text string) bool {
	var code []string
	for _, t := range msl.Tokenize(text) {
		switch {
		case t.Directive != 0 && t.Text == "return":
			return true
		case t.Directive == 0 && t.Kind != msl.Comment:
			code = append(code, t.Text)
		}
	}
	kernel := slices.Index(code, toolchain.KernelName(text))
	if kernel < 0 {
		return true
	}
	depth, body := 0, false
	for _, word := range code[kernel+1:] {
		switch word {
		case "(":
			depth++
		case ")":
			depth--
		case "{":
			body = body || depth == 0
			depth++
		case "}":
			if depth--; body && depth == 0 {
				return false
			}
		case "return":
			if body {
				return true
			}
		}
	}
	return true
}
