package mlxheaders

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mlxInclude is the folder of the installed MLX package's headers, including the Metal headers. They are read from
// there and are not part of this project.
const mlxInclude = "../../../third_party/mlx-c/install/mlx/include"

const mlxKernels = "mlx/backend/metal/kernels/"

var (
	includeLine  = regexp.MustCompile(`(?m)^[ \t]*#include[ \t]+"(mlx/[^"]+)"[ \t]*$`)
	constantLine = regexp.MustCompile(`(?:constant|STEEL_CONST) (\w+) (\w+)\s*\[\[function_constant\(\d+\)\]\];`)
)

// flattened returns the text of the headers with all includes of MLX's headers resolved, each header once, in the
// preprocessor's order. Includes of Metal's own headers remain.
func flattened(t testing.TB, headers ...string) string {
	t.Helper()
	text, _ := flatten(t, headers)
	return text
}

// replacedHeader is left out: it declares Metal's functions for bfloat with intrinsics of Apple's compiler, and the
// executor's library has these functions.
const replacedHeader = "bf16_math.h"

// flatten is flattened, and also returns the names of the headers that it read.
func flatten(t testing.TB, headers []string) (text string, names map[string]bool) {
	t.Helper()
	seen := map[string]bool{mlxKernels + replacedHeader: true}
	names = map[string]bool{}
	var read func(name string) string
	read = func(name string) string {
		if seen[name] {
			return ""
		}
		seen[name] = true
		names[strings.TrimPrefix(name, mlxKernels)] = true
		text, err := os.ReadFile(filepath.Join(mlxInclude, filepath.FromSlash(name)))
		require.NoError(t, err)
		return includeLine.ReplaceAllStringFunc(strings.ReplaceAll(string(text), "#pragma once", ""), func(line string) string {
			return read(includeLine.FindStringSubmatch(line)[1])
		}) + "\n"
	}
	var b strings.Builder
	for _, h := range headers {
		b.WriteString(read(mlxKernels + h))
	}
	return b.String(), names
}

// specialized replaces function constants by their values, as a Metal pipeline does. A constant without a value becomes
// false or 0.
func specialized(text string, constants map[string]string) string {
	return constantLine.ReplaceAllStringFunc(text, func(line string) string {
		m := constantLine.FindStringSubmatch(line)
		value, ok := constants[m[2]]
		if !ok {
			value = m[1] + "(0)"
		}
		return fmt.Sprintf("constant constexpr %s %s = %s;", m[1], m[2], value)
	})
}

// metalText returns the Metal source of a case: the headers, and an explicit instantiation of the kernel, as MLX passes
// it to Apple's compiler.
func metalText(t testing.TB, headers []string, constants map[string]string, kernel, arguments string) string {
	t.Helper()
	text := flattened(t, headers...)
	name := kernel + "<" + arguments + ">"
	return specialized(text, constants) +
		fmt.Sprintf("\ntemplate [[host_name(\"mlx_kernel\")]] [[kernel]] decltype(%s) %s;\n", name, name)
}
