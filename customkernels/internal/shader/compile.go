package shader

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// Compile calls compile with source, the C++ translation of text, and returns its result. If the compiler's errors show
// that the text needs conversions, Compile calls compile again with the translation that host returns for them.
func Compile[P any](text string, source *translate.HostSource,
	host func(string, translate.Conversions) (*translate.HostSource, error), compile func(source string) (P, error),
) (P, error) {
	var needed translate.Conversions
	for {
		p, err := compile(source.Source)
		var refused *toolchain.CompileError
		if !errors.As(err, &refused) {
			return p, err
		}
		more := addLines(&needed.Conditionals, conditionalError, refused.Output)
		if !needed.Swizzles && strings.Contains(refused.Output, "swizzle<") {
			needed.Swizzles, more = true, true
		}
		if !more {
			return p, err
		}
		if source, _ = host(text, needed); source == nil {
			return p, err
		}
	}
}

// addLines adds the lines of the text in which the compiler's output has an error, and reports whether any is new.
func addLines(lines *[]int, pattern *regexp.Regexp, output string) bool {
	known := len(*lines)
	for _, m := range pattern.FindAllStringSubmatch(output, -1) {
		line, _ := strconv.Atoi(m[1])
		if line -= translate.HostLineShift; !slices.Contains(*lines, line) {
			*lines = append(*lines, line)
		}
	}
	return len(*lines) > known
}

// conditionalError matches the errors of g++ and clang about conditional operators without a common type.
var conditionalError = regexp.MustCompile(`(?m)^[^:\n]+\.cpp:(\d+):\d+: error: (?:operands to '\?:'|conditional expression is ambiguous|incompatible operand types)`)
