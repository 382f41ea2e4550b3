package shader

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// Compile returns what compile makes of the C++ source of a text. Where C++ finds no type for the two values of
// a conditional operator, Compile gives them one and tries again.
func Compile[P any](text string, source *translate.HostSource, compile func(source string) (P, error)) (P, error) {
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
		if source, _ = translate.Host(text, lines...); source == nil {
			return p, err
		}
	}
}

// conditionalError is what g++ and clang say of two values that have no type in common.
var conditionalError = regexp.MustCompile(`(?m)^[^:\n]+\.cpp:(\d+):\d+: error: (?:operands to '\?:'|conditional expression is ambiguous|incompatible operand types)`)

// Located moves an error about the generated text to its place in the shader files.
func (k *Kernel) Located(text string, err error) error {
	var problem *msl.Error
	if errors.As(err, &problem) {
		if at, ok := k.Parsed.Locate(text, problem.Line); ok {
			at.Column = problem.Column
			return &msl.Error{Position: at, Message: problem.Message}
		}
	}
	return fmt.Errorf("%s: %w", k.File, err)
}

var compilerLine = regexp.MustCompile(`(?m)^[^:\n]+\.cpp:(\d+):(\d+): (?:fatal )?error: (.*)$`)

// LocatedCompileError moves the compiler's errors to their places in the shader files.
func (k *Kernel) LocatedCompileError(text string, err error) error {
	var refused *toolchain.CompileError
	if !errors.As(err, &refused) {
		return err
	}
	var lines []string
	for _, m := range compilerLine.FindAllStringSubmatch(refused.Output, -1) {
		line, _ := strconv.Atoi(m[1])
		if at, ok := k.Parsed.Locate(text, line-translate.HostLineShift); ok {
			lines = append(lines, fmt.Sprintf("%s:%d:%s: %s", at.File, at.Line, m[2], inMetal(m[3], text, line-translate.HostLineShift, m[2])))
		}
	}
	if len(lines) == 0 {
		// In MLX's signature or at link time: the compiler's own words.
		return fmt.Errorf("%s: %w", k.File, err)
	}
	const shown = 3
	if more := len(lines) - shown; more > 0 {
		lines = append(lines[:shown], fmt.Sprintf("(%d more)", more))
	}
	return errors.New(strings.Join(lines, "; "))
}

var word = regexp.MustCompile(`^\w+`)

// inMetal says of an error of the compiler at a line and column of the text what it means in Metal.
func inMetal(message, text string, line int, column string) string {
	switch {
	case strings.Contains(message, "not allowed in anonymous aggregate"):
		return message + ": g++ takes no half, bfloat or vector in a structure without a name; give it one, or set CXX=clang++"
	case !strings.Contains(message, "poisoned"): // metal_host.h says which words are
		return message
	}
	lines := strings.Split(text, "\n")
	at, _ := strconv.Atoi(column)
	if line < 1 || line > len(lines) || at < 1 || at > len(lines[line-1]) {
		return message
	}
	name := word.FindString(lines[line-1][at-1:])
	if name == "double" {
		return "Metal has no double: use float"
	}
	return "Metal has no " + name
}
