package setup

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestRuleAppliesExactly(t *testing.T) {
	tree := sourceTree{
		"mlx/c/a.cpp":        []byte("f(e.what()); f(e.what());\n"),
		"mlx/c/private/b.h":  []byte("f(e.what());\n"),
		"mlx/cother/skip.h":  []byte("f(e.what());\n"),
		"mlx/c/untouched.h":  []byte("g();\n"),
		"mlx/c/private/io.h": []byte("std::format(x)\n"),
	}
	r := rule{source: "patches/more.json", Name: "no format", Files: "mlx/c", Find: "f(e.what())", Replace: `f("%s", e.what())`, Count: 3}
	require.NoError(t, tree.apply(r))
	require.Equal(t, "f(\"%s\", e.what()); f(\"%s\", e.what());\n", string(tree["mlx/c/a.cpp"]))
	require.Equal(t, "f(\"%s\", e.what());\n", string(tree["mlx/c/private/b.h"]))
	require.Equal(t, "f(e.what());\n", string(tree["mlx/cother/skip.h"]), "outside the folder")

	err := tree.apply(r)
	require.EqualError(t, err, `patch "no format" fits 0 places of the mlx-c sources where 3 are expected: `+
		"use the mlx-c version of the lock file, or bring patches/more.json up to date")

	one := rule{Name: "one file", Files: "mlx/c/private/io.h", Find: "std::format(", Replace: "ours(", Count: 1}
	require.NoError(t, tree.apply(one))
	require.Equal(t, "ours(x)\n", string(tree["mlx/c/private/io.h"]))
}

func TestReadRules(t *testing.T) {
	for text, want := range map[string]string{
		`[{"name":"n","files":"f","find":"x","replace":"y"}]`:                        "lacks a field",
		`[{"name":"n","files":"f","find":"x","replace":"y","count":1,"expected":1}]`: "unknown field",
		`[{"name":"n"`: "unexpected EOF",
	} {
		_, err := readRules(fstest.MapFS{"rules.json": {Data: []byte(text)}}, "rules.json")
		require.ErrorContains(t, err, want)
	}
}

func TestClosure(t *testing.T) {
	tree := sourceTree{
		"mlx/c/a.cpp":        []byte("#include \"mlx/c/a.h\"\n  #include \"mlx/c/private/p.h\"\n#include <vector>\n"),
		"mlx/c/a.h":          []byte("#include \"half.h\"\n#include \"mlx/array.h\"\n"),
		"mlx/c/half.h":       []byte("#include \"mlx/c/a.h\"\n"),
		"mlx/c/private/p.h":  []byte("// #include \"mlx/c/unused.h\"\n"),
		"mlx/c/unused.h":     nil,
		"mlx/c/unrelated.cc": nil,
	}
	require.Equal(t, []string{"mlx/c/a.cpp", "mlx/c/a.h", "mlx/c/half.h", "mlx/c/private/p.h"},
		tree.closure("mlx/c/a.cpp"))
}

// An object's key must change with everything that can change the object, and with
// nothing else.
func TestObjectKey(t *testing.T) {
	build := func() *build {
		return &build{
			tools:    &toolchain{command: []string{"g++"}, version: "g++ 12", goos: "linux"},
			mlxcVers: "0.7.0",
			tree: sourceTree{
				"mlx/c/a.cpp": []byte("#include \"mlx/c/a.h\"\n"),
				"mlx/c/b.cpp": []byte("int b;\n"),
				"mlx/c/a.h":   []byte("int a;\n"),
			},
		}
	}
	b := build()
	a0, b0 := b.objectKey("mlx/c/a.cpp", "headers"), b.objectKey("mlx/c/b.cpp", "headers")
	require.NotEqual(t, a0, b0)

	b.tree["mlx/c/a.h"] = []byte("long a;\n")
	require.NotEqual(t, a0, b.objectKey("mlx/c/a.cpp", "headers"))
	require.Equal(t, b0, b.objectKey("mlx/c/b.cpp", "headers"))

	b = build()
	b.mlxcVers = "0.7.1"
	require.NotEqual(t, a0, b.objectKey("mlx/c/a.cpp", "headers"))

	require.NotEqual(t, b0, build().objectKey("mlx/c/b.cpp", "other headers"))
	b = build()
	b.tools.version = "g++ 13"
	require.NotEqual(t, b0, b.objectKey("mlx/c/b.cpp", "headers"))
	b.tools = &toolchain{command: []string{"clang++"}, version: "g++ 12", goos: "linux"}
	require.NotEqual(t, b0, b.objectKey("mlx/c/b.cpp", "headers"))
}
