package msl

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/addrspace/prelude"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
)

// A branch that the text itself excludes is left out. Every branch of other conditionals is read.
func TestConditions(t *testing.T) {
	for text, want := range map[string]string{
		"#if __METAL_VERSION__ >= 300\na\n#else\nb\n#endif":                             "a",
		"#if __METAL_VERSION__ < 300\na\n#elif defined(__METAL__)\nb\n#else\nc\n#endif": "b",
		"#ifdef OTHER\na\n#else\nb\n#endif":                                             "b",
		"#ifndef GUARD\n#define GUARD\na\n#ifdef GUARD\nb\n#endif\n#endif":              "a b",
		"#define N 4\n#if N * 2 == 8 && !defined OTHER\na\n#else\nb\n#endif":            "a",
		"#define N (M + 1)\n#define M 2\n#if N % 2\na\n#else\nb\n#endif":                "a",
		"#define N 1\n#undef N\n#if N\na\n#else\nb\n#endif":                             "b",
		"#define N(x) x\n#if N(1)\na\n#else\nb\n#endif":                                 "a b",
		"#if __APPLE__ || 1\na\n#else\nb\n#endif":                                       "a",
		"#if __APPLE__ && 0\na\n#else\nb\n#endif":                                       "b",
		"#if __APPLE__\na\n#define N\n#else\nb\n#endif\n#ifdef N\nc\n#else\nd\n#endif":  "a b c d",
		"#if __APPLE__\na\n#elif 1\nb\n#else\nc\n#endif":                                "a b",
		"#ifdef FLT_MAX\na\n#else\nb\n#endif":                                           "a b",
		"#if TARGET_OS_OSX\na\n#else\nb\n#endif":                                        "a b",
		"#ifdef METAL_TILES_H\na\n#else\nb\n#endif":                                     "a b",
		"#if __has_include(<metal_tensor>)\na\n#else\nb\n#endif":                        "a b",
		"#if 1 ? 0 : 1\na\n#else\nb\n#endif":                                            "a b",
		"#if 1 / 0\na\n#else\nb\n#endif":                                                "a b",
		"#define N N\n#if N\na\n#else\nb\n#endif":                                       "a b",
		"#if 0\n#if 1\na\n#endif\n#define N\n#endif\n#ifdef N\nb\n#else\nc\n#endif":     "c",
		"#if " + strings.Repeat("(", 999) + "1\na\n#endif":                              "a",
	} {
		s, err := NewStructure("", text, nil)
		require.NoError(t, err, text)
		var words []string
		for _, token := range s.Tokens {
			words = append(words, token.Text)
		}
		require.Equal(t, want, strings.Join(words, " "), text)
	}
}

// Executors differ in the macros of their headers, so it is unknown whether such a macro is defined.
func TestConditionsOnMacrosOfHeaders(t *testing.T) {
	defines := regexp.MustCompile(`(?m)^[ \t]*#[ \t]*define (\w+)`)
	for _, pattern := range []string{"../metalstd/common/*.h", "../metalstd/host/*.h", "../metalstd/cuda/*.h"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			header, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, m := range defines.FindAllStringSubmatch(string(header), -1) {
				if m[1] != "__METAL__" && m[1] != "__METAL_VERSION__" {
					require.False(t, (&conditions{}).defined(m[1]).known, "%s: %s", path, m[1])
				}
			}
		}
	}
}

// A kernel or function in an excluded branch is no second definition.
func TestDefinitionsInBranches(t *testing.T) {
	const text = `#if __METAL_VERSION__ < 300
float one() { return 0; }
float table[2] = {0, 0};
kernel void f(device int* z) { z[0] = 0; }
#else
float one() { return 1; }
kernel void f(device float* y) { y[0] = one(); }
#endif
`
	file, err := Parse(tree(map[string]string{"f.metal": text}), "f.metal")
	require.NoError(t, err)
	require.Len(t, file.Kernels, 1)
	require.Equal(t, 7, file.Kernels[0].Pos.Line)
}

// The headers for the host and the prelude of the address-space check define the version by which branches are chosen.
func TestMetalVersionIsTheSameEverywhere(t *testing.T) {
	line := fmt.Sprintf("#define __METAL_VERSION__ %d\n", metalVersion)
	require.Equal(t, 1, strings.Count(prelude.Text, "__METAL_VERSION__"))
	require.Contains(t, prelude.Text, line)
	folder := t.TempDir()
	require.NoError(t, metalstd.WriteHost(folder))
	headers, err := filepath.Glob(folder + "/*.h")
	require.NoError(t, err)
	count := 0
	for _, path := range headers {
		header, err := os.ReadFile(path)
		require.NoError(t, err)
		count += strings.Count(string(header), line)
	}
	require.Equal(t, 1, count)
}
