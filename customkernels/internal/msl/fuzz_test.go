package msl

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// addSeeds adds the shaders of testdata and pieces that once were or could be trouble.
func addSeeds(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob("testdata/*.metal")
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

func FuzzTokenize(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text string) { requireLossless(t, text) })
}

// FuzzParse looks for a shader file that makes the loader panic, or that gives a kernel whose
// further way ends in anything but a result or an *Error.
func FuzzParse(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parseText(text)
		if err != nil {
			requireProblem(t, err, text)
			return
		}
		require.NotEmpty(t, file.Kernels)
		for _, k := range file.Kernels {
			require.Equal(t, k.Body, text[k.BodyPos.Offset:][:len(k.Body)])
			require.NotEmpty(t, k.Outputs())
			m := k.MLX()
			require.Equal(t, strings.Count(k.Body, "\n"), strings.Count(m.Body, "\n"))
			require.Contains(t, m.Body, k.Body)
			require.Equal(t, m.Header == "", !strings.HasSuffix(m.Header, "\n"))
			generated := generateDefault(k, 64)
			host, err := Host(generated)
			if err != nil {
				requireProblem(t, err, generated)
				continue
			}
			require.Contains(t, host.Source, "mlxgrad_entry")
		}
	})
}

// FuzzInclude looks for two files that make the loader panic, or lose the place of a token.
func FuzzInclude(f *testing.F) {
	for _, seed := range [][2]string{
		{"#include \"a.h\"\n", "int a;"},
		{"# /* a */ import \\\n\"a.h\" /* b\n */ int b;\n#include \"a.h\"", "#ifndef A\n#define A\n#include \"f.metal\"\n#endif\n"},
		{"#if A\n#include \"a.h\"\n#elif B\n#else\n#endif", "#pragma once\r\nint a; \\"},
		{"#include \"a.h\"\n*/", "/*"},
		{"#include \"a.h\"\n)\"", "R\"("},
		{"#ifndef A", "#ifndef A\n#define"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, header string) {
		files := map[string]string{"f.metal": text, "a.h": header}
		s, err := readShader(tree(files), "f.metal")
		if err != nil {
			var problem *Error
			require.True(t, errors.As(err, &problem), "%T: %v", err, err)
			requireProblem(t, err, files[problem.File])
			return
		}
		for _, token := range s.all {
			at := s.position(token)
			// A literal that one file begins may end in the other.
			if src := files[at.File]; !strings.Contains(token.Text, "\n") {
				require.Equal(t, token.Text, src[at.Offset:][:len(token.Text)], at)
			}
		}
	})
}

// FuzzHost looks for a generated text that makes the rewriting panic or moves its lines.
func FuzzHost(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := newStructure("", text, nil); err == nil {
			if items, err := s.items(); err == nil {
				w := &checkWriter{structure: s, items: items, code: newCode(s.all), edits: edits{text: text}}
				if translated, err := w.translate(); err == nil {
					w.programScope()
					require.GreaterOrEqual(t, strings.Count(translated, "\n"), strings.Count(text, "\n"))
				}
			}
		}
		host, err := Host(text)
		if err != nil {
			requireProblem(t, err, text)
			return
		}
		at := strings.Index(host.Source, "namespace {\nvoid mlxg_invoke(")
		require.Positive(t, at)
		want := strings.Count(text, "\n") + HostLineShift
		if !strings.HasSuffix(text, "\n") {
			want++
		}
		if strings.Contains(host.Source, "mlxg_shader") {
			want++
		}
		require.Equal(t, want, strings.Count(host.Source[:at], "\n"))
	})
}

// requireProblem checks that an error is an *Error with a place in the text.
func requireProblem(t *testing.T, err error, text string) {
	t.Helper()
	var problem *Error
	require.True(t, errors.As(err, &problem), "%T: %v", err, err)
	require.NotEmpty(t, problem.Message)
	require.Positive(t, problem.Line)
	require.Positive(t, problem.Column)
	require.LessOrEqual(t, problem.Line, 1+strings.Count(text, "\n"))
}

// Large hostile texts come to an end: a cost that is exponential in their length exceeds every limit of time.
func TestHostileTexts(t *testing.T) {
	const n = 10_000
	kernel := "kernel void f(device float* y) { %s }"
	for _, piece := range []string{
		"<", "a<", "(", "[", "[[", "{", "template<", "template<typename ", "namespace a{", "struct a{", "threadgroup ", "constant ",
		"constant a<", "a>constant ", "#if 1\n", "#define a threadgroup\n", "\"", "R\"(", "/*", "\\\n", "kernel void f(", "device*", ";", "::", "a::", ",", "#define A constant\n A b;",
		"threadgroup float a;", "constant float a[2] = {1, 2};", "static_cast<", "float4(", "vec<float,4>", "vec<", ") const device ", "f(a) constant ", "x[[a]]",
	} {
		t.Run(piece, func(t *testing.T) { // go test's limit of time names the piece
			long := strings.Repeat(piece, n/len(piece))
			for _, text := range []string{long, strings.Replace(kernel, "%s", long, 1), long + "\nkernel void f(device float* y) {}\n"} {
				_, _ = parseText(text)
				_, _ = Host(text)
				if s, err := newStructure("", text, nil); err == nil {
					if items, err := s.items(); err == nil {
						w := &checkWriter{structure: s, items: items, code: newCode(s.all), edits: edits{text: text}}
						_, _ = w.translate()
					}
				}
			}
		})
	}
}
