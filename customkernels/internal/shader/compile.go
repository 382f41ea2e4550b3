package shader

import (
	"errors"
	"regexp"
	"slices"
	"strconv"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// Compile calls compile with source, the C++ translation of text, and returns its result. If the compiler finds no
// common type for the two values of a conditional operator, Compile converts the values and calls compile again, with
// the translation that host returns.
func Compile[P any](text string, source *translate.HostSource,
	host func(text string, conditionals ...int) (*translate.HostSource, error), compile func(source string) (P, error),
) (P, error) {
	var lines []int
	for {
		p, err := compile(source.Source)
		known := len(lines)
		var refused *toolchain.CompileError
		if errors.As(err, &refused) {
			for _, m := range conditionalError.FindAllStringSubmatch(refused.Output, -1) {
				line, _ := strconv.Atoi(m[1])
				if line -= translate.HostLineShift; !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
		}
		if len(lines) == known {
			return p, err
		}
		if source, _ = host(text, lines...); source == nil {
			return p, err
		}
	}
}

// conditionalError matches the errors of g++ and clang about conditional operators without a common type.
var conditionalError = regexp.MustCompile(`(?m)^[^:\n]+\.cpp:(\d+):\d+: error: (?:operands to '\?:'|conditional expression is ambiguous|incompatible operand types)`)
