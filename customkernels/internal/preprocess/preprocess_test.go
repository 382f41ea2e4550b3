package preprocess

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// run preprocesses dir/f.metal of the files.
func run(t *testing.T, o Options, files map[string]string) (*msl.Structure, error) {
	t.Helper()
	if _, err := toolchain.FindToolchain(); err != nil {
		skip.Missing(t, skip.CXX, err)
	}
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return Run(t.Context(), fsys, "dir/f.metal", o)
}

// words returns the tokens of a text and their positions.
func words(s *msl.Structure) (texts, positions []string) {
	for _, t := range s.Tokens {
		texts = append(texts, t.Text)
		positions = append(positions, s.Position(t).String())
	}
	return texts, positions
}

// Every token leads back to the file, line and column that it comes from, and a token of a macro to the macro's name.
func TestPositions(t *testing.T) {
	s, err := run(t, Options{Include: []string{"lib"}, Define: []string{"WIDTH=8", "FAST"}}, map[string]string{
		"dir/f.metal": "#include <metal_stdlib>\n#include \"a.h\"\n#include <b.h>\n" +
			"int   x =  WIDTH; /* c */ int y = TWICE(x,\n  3) + 1;\n" +
			"#ifdef FAST\nint fast;\n#else\nint slow;\n#endif\n#line 90 \"other\"\nint z;\n",
		"dir/a.h": "#pragma once\n#define TWICE(a, b) a \\\n  * b\nint a;\n",
		"lib/b.h": "#include \"c.h\"\nint b;\n", "lib/c.h": "int c;\n",
	})
	require.NoError(t, err)
	texts, positions := words(s)
	require.Equal(t, []string{
		"int", "a", ";", "int", "c", ";", "int", "b", ";", "int", "x", "=", "8", ";", "int", "y", "=", "x", "*", "3",
		"+", "1", ";", "int", "fast", ";", "int", "z", ";",
	}, texts)
	at := map[string]string{}
	for i, text := range texts {
		at[text] = positions[i]
	}
	for text, want := range map[string]string{
		"a": "dir/a.h:4:5", "c": "lib/c.h:1:5", "b": "lib/b.h:2:5", "8": "dir/f.metal:4:12", "y": "dir/f.metal:4:31",
		"*": "dir/f.metal:4:35", "1": "dir/f.metal:5:8", "fast": "dir/f.metal:7:5", "z": "dir/f.metal:12:5",
	} {
		require.Equal(t, want, at[text], text)
	}
}

// Conditions see Metal's macros and the integer limits. Macros of Metal's library stay for the library.
func TestMetalMacros(t *testing.T) {
	s, err := run(t, Options{}, map[string]string{"dir/f.metal": `
#if defined(__METAL__) && __METAL_VERSION__ >= 300 && __METAL_VERSION__ < 400 && INT_MAX > 0 && defined(INFINITY) && \
    !defined(__GNUC__) && !defined(__linux__) && __has_include(<metal_stdlib>) && !__has_include("none.h")
float x = INFINITY, y = __metal_fmax(1.0f, 2.0f, __METAL_MAYBE_FAST_MATH__);
#endif
`})
	require.NoError(t, err)
	texts, _ := words(s)
	require.Equal(t, []string{
		"float", "x", "=", "INFINITY", ",", "y", "=", "::", "metal", "::", "fmax", "(", "1.0f", ",", "2.0f", ")", ";",
	}, texts)
}

func TestPreprocessorErrors(t *testing.T) {
	for text, want := range map[string]string{
		"int a;\n  #error no good\n":             "dir/f.metal:2:4: #error no good",
		"#include \"none.h\"\n":                  "dir/f.metal:1:10: \"none.h\" cannot be read: ",
		"#include <none.h>\n":                    "dir/f.metal:1:10: <none.h> is not a header of Metal",
		"#include \"/etc/passwd\"\n":             "is an absolute path",
		"#define H \"a.h\"\n#include H\n":        "dir/f.metal:2:1: #include needs a name in quotes",
		"#include_next \"a.h\"\n":                "#include_next is not part of Metal",
		"#if 1\n":                                "dir/f.metal:1:1: unterminated #if",
		"#include \"a.h\"\n":                     "dir/a.h:1:2: #error in a",
		"#inc\\\nlude \"/etc/passwd\"\n":         "dir/f.metal:1:2: the word inc continues after a line continuation",
		"%:include \"/etc/passwd\"\n":            "dir/f.metal:1:1: %: stands for # in C++",
		"int f() { return (1; }\n":               "dir/f.metal:1:22: unbalanced brackets",
		"#define F(a) a\nint x = F(1;\n":         "dir/f.metal:",
		"#include \"folder\"\n":                  "is not a regular file",
		"#include \"../../above.h\"\nint above;": "cannot be read",
	} {
		_, err := run(t, Options{}, map[string]string{
			"dir/f.metal": text, "dir/a.h": "#error in a\n", "dir/folder/b.h": "",
		})
		require.ErrorContains(t, err, want, text)
	}
	_, err := run(t, Options{}, map[string]string{"dir/f.metal": "#if 0\n#include \"none.h\"\n#endif\nint a;"})
	require.NoError(t, err, "a line that is not reached")
	_, err = run(t, Options{Define: []string{"1X"}}, map[string]string{"dir/f.metal": ""})
	require.ErrorContains(t, err, `"1X" is no macro`)
}

// A few lines can expand to any size.
func TestMacroBomb(t *testing.T) {
	text := "#define A0 " + strings.Repeat("x ", 1<<15) + "\n" + strings.Repeat("A0\n", 1100)
	_, err := run(t, Options{}, map[string]string{"dir/f.metal": text})
	require.ErrorContains(t, err, "the preprocessed text is larger than 64 MiB")
}
