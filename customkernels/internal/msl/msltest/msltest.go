// Package msltest holds inputs for the tests of packages that read Metal text.
package msltest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Seeds adds to a fuzz test the shaders that match a pattern and short texts that are hard to parse.
func Seeds(f *testing.F, pattern string) {
	f.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(text))
	}
	for _, seed := range []string{
		"", "\\", "\\\r\n", "/*", "//\\", "#", "#\\\ninclude <", "R\"(", "R\"x(\")x", "1'", "'\\", "\"\\\n",
		"kernel void f(device float* y [[buffer(0)]]) {}",
		"template <typename T, int N = (1 > 0)> [[kernel]] void f(device T* y, threadgroup T* s, uint3 i [[thread_position_in_grid]]) { threadgroup T a[N], b; }",
		"kernel void f(device vec<float, 4>& y, constant int* y_shape) { int y_shape = 1; }",
		"template<", "template <template <", "kernel", "[[kernel]]", "[[", "[[]]", "kernel void (", "kernel void f(", "namespace {", "namespace a::", "extern \"C\" {",
		"struct S : T {", "S::S() : a{1}, b(2) {}", "operator()(", "enum {", "using namespace", "template [[host_name(\"a\")]]", "threadgroup", "threadgroup float", "threadgroup float a[", "constant", "constant float a = ",
		"#if 0\n#elif 1\n#else\n#endif", "#if\n#else\n#else\n#endif", "#define A threadgroup\nA float x[2];",
		"kernel void f(device float* y) { #if A\n }",
		"constant bool a [[function_constant(0)]]; kernel void f(device float* y) {}",
	} {
		f.Add(seed)
	}
}

// Hostile calls a function with long texts that repeat one piece. A function whose cost is exponential in the length of
// a text exceeds the time limit of go test, which names the piece.
func Hostile(t *testing.T, read func(text string)) {
	t.Helper()
	const length = 10_000
	for _, piece := range []string{
		"<", "a<", "(", "[", "[[", "{", "template<", "template<typename ", "namespace a{", "struct a{", "threadgroup ", "constant ",
		"constant a<", "a>constant ", "#if 1\n", "#define a threadgroup\n", "\"", "R\"(", "/*", "\\\n", "kernel void f(", "device*", ";", "::", "a::", ",", "#define A constant\n A b;",
		"threadgroup float a;", "constant float a[2] = {1, 2};", "static_cast<", "float4(", "vec<float,4>", "vec<", ") const device ", "f(a) constant ", "x[[a]]",
	} {
		t.Run(piece, func(t *testing.T) {
			long := strings.Repeat(piece, length/len(piece))
			read(long)
			read("kernel void f(device float* y) { " + long + " }")
			read(long + "\nkernel void f(device float* y) {}\n")
		})
	}
}
