package msl

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl/msltest"
)

func FuzzTokenize(f *testing.F) {
	msltest.Seeds(f, "testdata/*.metal")
	f.Fuzz(func(t *testing.T, text string) { requireLossless(t, text) })
}

// FuzzParse looks for a shader file that makes the parser panic, or for an error without a position.
func FuzzParse(f *testing.F) {
	msltest.Seeds(f, "testdata/*.metal")
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
		}
	})
}

// FuzzLayout looks for a structure that makes the layout panic, or for fields that overlap.
func FuzzLayout(f *testing.F) {
	f.Add("struct a { uint x; float3 v[2]; }; struct s { device a* p [[id(0)]]; a in[2]; texture2d<float> t; half h, k[3]; };")
	f.Add("typedef struct { enum e m; array<vec<half, 3>, 2> a; } s; enum e : ushort { x };")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := NewStructure("f.metal", text, nil)
		if err != nil {
			return
		}
		items, err := s.Items()
		if err != nil {
			return
		}
		layout, err := s.Layout(items, "s")
		if err != nil {
			return
		}
		end := 0
		for _, field := range layout.Fields {
			require.GreaterOrEqual(t, field.Offset, end)
			end = field.Offset + field.Size
		}
		require.LessOrEqual(t, end, layout.Size)
	})
}

// FuzzInclude looks for two files that make the parser panic, or for a token with a wrong position.
func FuzzInclude(f *testing.F) {
	for _, seed := range [][2]string{
		{"#include \"a.h\"\n", "int a;"},
		{
			"# /* a */ import \\\n\"a.h\" /* b\n */ int b;\n#include \"a.h\"",
			"#ifndef A\n#define A\n#include \"f.metal\"\n#endif\n",
		},
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
		for _, token := range s.All {
			at := s.Position(token)
			// A literal that one file begins may end in the other.
			if src := files[at.File]; !strings.Contains(token.Text, "\n") {
				require.Equal(t, token.Text, src[at.Offset:][:len(token.Text)], at)
			}
		}
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

func TestParseOfHostileTexts(t *testing.T) {
	msltest.Hostile(t, func(text string) { _, _ = parseText(text) })
}
