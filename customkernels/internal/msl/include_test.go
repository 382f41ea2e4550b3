package msl

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// tree returns a file system with these texts by path.
func tree(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

const user = "kernel void f(device float* y) { y[0] = one(); }\n"

// The text of an included file replaces the #include line, once per file. Positions are positions in the files.
func TestInclude(t *testing.T) {
	for name, test := range map[string]struct {
		files  map[string]string
		header string
	}{
		"beside": {
			map[string]string{
				"d/f.metal": "int a;\n#include \"one.h\"\nint b;\n" + user,
				"d/one.h":   "float one() { return 1; }\n",
			},
			"int a;\n\nfloat one() { return 1; }\n\n\nint b;\n",
		},
		"below and above, nested": {
			map[string]string{
				"d/f.metal": "#include \"e/x.h\"\n" + user, "d/e/x.h": "#include \"../../g/one.h\"\nint x;",
				"g/one.h": "float one() { return 1; }",
			},
			"\n\nfloat one() { return 1; }\n\nint x;\n",
		},
		"once": {
			map[string]string{
				"d/f.metal": "#include \"a.h\"\n#include \"b.h\"\n#include \"a.h\"\n" + user,
				"d/a.h":     "#pragma once\nfloat one() { return 1; }", "d/b.h": "#include \"../d/a.h\"\nint b;",
			},
			"\n\nfloat one() { return 1; }\n\n\n\nint b;\n",
		},
		"a cycle": {
			map[string]string{
				"d/f.metal": "#include \"a.h\"\n" + user, "d/a.h": "#include \"b.h\"\nint a;",
				"d/b.h": "#include \"a.h\"\n#include \"f.metal\"\nint b;",
			},
			"\n\n\n\nint b;\n\nint a;\n",
		},
		"guards": {
			map[string]string{
				"d/f.metal": "#include \"a.h\"\n#include \"c.h\"\n" + user,
				"d/a.h":     "// a\n#ifndef A\n// a\n#define A\n#include \"c.h\"\n#endif",
				"d/c.h":     "#ifndef C\n#define C 1\nint c;\n#endif\n",
			},
			"\n// a\n#ifndef A\n// a\n#define A\n\n#ifndef C\n#define C 1\nint c;\n#endif\n\n\n#endif\n",
		},
		"in branches": {
			map[string]string{
				"d/f.metal": "#ifdef A\n#include \"a.h\"\n#else\n#include \"b.h\"\n#endif\n" + user, "d/a.h": "int a;",
				"d/b.h": "int b;",
			},
			"#ifdef A\n\nint a;\n\n#else\n\nint b;\n\n#endif\n",
		},
		"twice within a branch": {
			map[string]string{
				"d/f.metal": "#ifdef A\n#include \"a.h\"\n#if B\n#include \"a.h\"\n#endif\n#endif\n" + user,
				"d/a.h":     "int a;",
			},
			"#ifdef A\n\nint a;\n\n#if B\n\n#endif\n#endif\n",
		},
		"left out": {
			map[string]string{"d/f.metal": "#if 0\n#include \"none.h\"\n#endif\n" + user},
			"#if 0\n#include \"none.h\"\n#endif\n",
		},
		"Metal's": {
			map[string]string{
				"d/f.metal": "#include <metal_stdlib>\n#include \"a.h\"\n" + user,
				"d/a.h":     "#include <metal_simdgroup>\nusing namespace metal;\nint a;",
			},
			"\n\n\n\nint a;\n",
		},
		"odd spelling": {
			map[string]string{
				"d/f.metal": "/* a */ # /* b */ import \\\n \"a.h\" /* c\n */ // d\nint b;\n" + user,
				"d/a.h":     "int a;\r\n",
			},
			"/* a */\n\n\nint a;\r\n\n\nint b;\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := Parse(tree(test.files), "d/f.metal")
			require.NoError(t, err)
			k := file.Kernels[0]
			var lines []string
			for line := range strings.SplitSeq(k.Header, "\n") {
				lines = append(lines, strings.TrimRight(line, " "))
			}
			require.Equal(t, test.header, strings.Join(lines, "\n"))
			requireOrigins(t, k.structure, test.files)
			// A generated text has the header and the body of the kernel. Each of their lines leads back to its file.
			text := k.Header + "[[kernel]] void f(\n  device float* y [[buffer(0)]]) {\n" + k.Body + "\n}\n"
			located := 0
			for i, line := range strings.Split(text, "\n") {
				at, ok := k.Locate(text, i+1)
				if !ok || strings.TrimSpace(line) == "" || strings.Contains(line, "one()") ||
					strings.HasPrefix(line, "/* a */") {
					continue
				}
				located++
				require.Equal(t, strings.Split(test.files[at.File], "\n")[at.Line-1], line, at)
			}
			require.Positive(t, located)
		})
	}
}

// requireOrigins checks the position of every token against the files.
func requireOrigins(t *testing.T, s *Structure, files map[string]string) {
	t.Helper()
	for _, token := range s.All {
		at := s.Position(token)
		src, ok := files[at.File]
		require.True(t, ok, at.File)
		require.Equal(t, token.Text, src[at.Offset:][:len(token.Text)], at)
		requirePosition(t, src, at)
	}
}

func TestIncludeProblems(t *testing.T) {
	for name, test := range map[string]struct {
		files    map[string]string
		at, want string
	}{
		"missing": {
			map[string]string{"d/f.metal": "int a;\n  #include \"none.h\"\n" + user},
			"d/f.metal:2:12", `"none.h" cannot be read: open d/none.h: file does not exist`,
		},
		"missing from an included file": {
			map[string]string{
				"d/f.metal": "#include \"a.h\"\n" + user, "d/a.h": "\n#include \"e/b.h\"\n",
				"d/e/b.h": "#include \"none.h\"",
			},
			"d/e/b.h:1:10", "open d/e/none.h",
		},
		"outside": {
			map[string]string{"d/f.metal": "#include \"../../a.h\"\n" + user},
			"d/f.metal:1:10", `"../../a.h" leads to ../a.h and cannot be read: `,
		},
		"absolute": {
			map[string]string{"d/f.metal": "#include \"/a.h\"\n" + user, "d/a.h": "int a;"},
			"d/f.metal:1:10", "\"/a.h\" is an absolute path; write it relative",
		},
		"MLX's": {
			map[string]string{
				"d/f.metal": "#include \"a.h\"\n" + user,
				"d/a.h":     "#include \"mlx/backend/metal/kernels/utils.h\"\n",
			},
			"d/a.h:1:10", "MLX's own headers cannot be included",
		},
		"in angles": {
			map[string]string{"d/f.metal": "#include <a.h>\n" + user, "d/a.h": ""},
			"d/f.metal:1:10", `<a.h> is not a header of Metal; write #include "a.h"`,
		},
		"once under a condition": {
			map[string]string{
				"d/f.metal": "#ifdef A\n#include \"a.h\"\n#endif\n#include \"a.h\"\n" + user,
				"d/a.h":     "int a;",
			},
			"d/f.metal:4:10", "already included at d/f.metal:2:10, under a condition that may be false here",
		},
		"once in another branch": {
			map[string]string{
				"d/f.metal": "#ifdef A\n#include \"a.h\"\n#else\n#include \"a.h\"\n#endif\n" + user,
				"d/a.h":     "int a;",
			},
			"d/f.metal:4:10", "already included",
		},
		"an open conditional": {
			map[string]string{"d/f.metal": "#include \"a.h\"\n" + user, "d/a.h": "int a;\n#if A\n"},
			"d/a.h:2:1", "no #endif",
		},
		"a bracket": {
			map[string]string{"d/f.metal": "#include \"a.h\"\n" + user, "d/a.h": "\nint a[2;\n"},
			"d/a.h:2:6", "never closed",
		},
		"brackets of two files": {
			map[string]string{"d/f.metal": "int b[\n#include \"a.h\"\n" + user, "d/a.h": "\n 2);\n"},
			"d/a.h:2:3", `does not fit the "[" at d/f.metal:1:6`,
		},
		"a kernel's signature": {
			map[string]string{"d/f.metal": "#include \"a.h\"\n", "d/a.h": "\nkernel void f(float* y) {}\n"},
			"d/a.h:2:22", "no address space",
		},
		"a kernel twice": {
			map[string]string{"d/f.metal": "#include \"a.h\"\n" + user, "d/a.h": "\n" + user},
			"d/f.metal:2:13", "defined twice, first at d/a.h:2:13",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tree(test.files), "d/f.metal")
			var problem *Error
			require.ErrorAs(t, err, &problem)
			require.Contains(t, problem.Message, test.want)
			require.Equal(t, test.at, problem.Position.String())
		})
	}
}

// A kernel of an included file, with a function constant there.
func TestIncludedKernel(t *testing.T) {
	file, err := Parse(tree(map[string]string{
		"f.metal": "int a;\n#include \"a.h\"\n",
		"a.h":     "\n  constant int n [[function_constant(0)]];\nkernel void g(device float* y) {\n  y[0] = n; }\n",
	}), "f.metal")
	require.NoError(t, err)
	k := file.Kernels[0]
	require.Equal(t, "a.h:3:13", k.Pos.String())
	require.Equal(t, "a.h:2:16", k.Constants[0].Pos.String())
	require.Equal(t, "int a;\n\n\n  constant int n [[function_constant(0)]];\n", k.Header)
	require.Equal(t, Position{File: "a.h", Line: 3, Column: 33, Offset: 76}, k.BodyPos)
}
