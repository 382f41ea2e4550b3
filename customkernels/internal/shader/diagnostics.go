package shader

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// MapParseError maps the position of a parse error in the generated text to the shader files.
func (k *Kernel) MapParseError(text string, err error) error {
	var problem *msl.Error
	if errors.As(err, &problem) {
		if at, ok := k.Locate(text, problem.Line, problem.Column); ok {
			return &msl.Error{Position: at, Message: problem.Message}
		}
	}
	return fmt.Errorf("%s: %w", k.File, err)
}

var compilerLine = regexp.MustCompile(`(?m)^[^:\n]+\.cpp:(\d+):(\d+): (?:fatal )?error: (.*)$`)

// MetalText is the file name that NVRTC reports for lines of the text that MLX generates.
const MetalText = "generated.metal"

var nvrtcLine = regexp.MustCompile(`(?m)^generated\.metal\((\d+)\): (?:catastrophic )?error: (.*)$`)

// CompileErrors are the errors of a compiler, with places in the shader files.
type CompileErrors []*msl.Error

// Error returns the first errors on one line.
func (e CompileErrors) Error() string {
	const shown = 3
	var texts []string
	for _, one := range e[:min(len(e), shown)] {
		texts = append(texts, one.Error())
	}
	if more := len(e) - shown; more > 0 {
		texts = append(texts, fmt.Sprintf("(%d more)", more))
	}
	return strings.Join(texts, "; ")
}

// MapCompilerError maps the positions of compiler errors to the shader files: see [CompileErrors]. It returns other
// errors unchanged.
func (k *Kernel) MapCompilerError(text string, err error) error {
	var refused *toolchain.CompileError
	if !errors.As(err, &refused) {
		return err
	}
	var list CompileErrors
	for _, m := range compilerLine.FindAllStringSubmatch(refused.Output, -1) {
		line, _ := strconv.Atoi(m[1])
		column, _ := strconv.Atoi(m[2])
		if at, ok := k.Locate(text, line-translate.HostLineShift, column); ok {
			list = append(list, msl.Errorf(at, "%s", inMetal(m[3], text, line-translate.HostLineShift, m[2])))
		}
	}
	for _, m := range nvrtcLine.FindAllStringSubmatch(refused.Output, -1) {
		line, _ := strconv.Atoi(m[1])
		if at, ok := k.Locate(text, line, 0); ok {
			list = append(list, msl.Errorf(at, "%s", m[2]))
		}
	}
	if len(list) == 0 {
		// The error is in MLX's signature or from the linker: keep the compiler's text.
		return fmt.Errorf("%s: %w", k.File, err)
	}
	return list
}

// textureCall matches the errors of g++ and clang about a call of a texture's member function. Clang does not name the
// class.
var textureCall = regexp.MustCompile(
	`^no matching (?:function for call to \W(?:metal::)?texture\w+<.*>::(\w+)\(|member function for call to '(\w+)'$)`)

// textureCalls holds the requirements of a texture's member functions.
var textureCalls = map[string]string{
	"read":   "a texture with access::write cannot be read",
	"write":  "only a texture with access::write or access::read_write can be written",
	"sample": "only a texture with access::sample can be sampled",
	"fence":  "only a texture with access::read_write has a fence",
}

var word = regexp.MustCompile(`^\w+`)

// inMetal explains a compiler error in terms of Metal.
func inMetal(message, text string, line int, column string) string {
	if m := textureCall.FindStringSubmatch(message); m != nil && (m[1] != "" || strings.Contains(text, "texture")) {
		if rule := textureCalls[m[1]+m[2]]; rule != "" {
			return message + ": " + rule + "; coordinates and types must match too"
		}
	}
	switch {
	case strings.Contains(message, "not allowed in anonymous aggregate"):
		return message + ": g++ allows no half, bfloat or vector in an anonymous structure: name it, or set " +
			"CXX=clang++"
	case !strings.Contains(message, "poisoned"): // metal_host.h poisons these words
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
