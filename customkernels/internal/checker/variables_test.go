package checker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFillVariables(t *testing.T) {
	const call = " mlxg::checker::fill("
	for text, want := range map[string]string{
		"float a;":                                   "float a;" + call + "a);",
		"float a = 1, b, c[4][2];":                   "float a = 1, b, c[4][2];" + call + "b);" + call + "c);",
		"metal::vec<float, 4> v;":                    "metal::vec<float, 4> v;" + call + "v);",
		"typename X<T>::type v;":                     "typename X<T>::type v;" + call + "v);",
		"unsigned long long n;":                      "unsigned long long n;" + call + "n);",
		"if (x) { T a; } else { T b; }":              "if (x) { T a;" + call + "a); } else { T b;" + call + "b); }",
		"auto f = [&](int i) { half s; return s; };": "auto f = [&](int i) { half s;" + call + "s); return s; };",

		"float a = 1;":                            "",
		"device float* p;":                        "",
		"return a;":                               "",
		"const float a = {};":                     "",
		"struct pair { float a; int b; } p;":      "",
		"for (uint j = 0; j < n; j++) x > y;":     "",
		"a = b; f(c); ++d; e < f; g > h;":         "",
		"typedef float t; using namespace metal;": "",
		"static int n;":                           "",
		"float a(3);":                             "",
		"// float a;":                             "",
	} {
		if want == "" {
			want = text
		}
		require.Equal(t, "void f() {\n"+want+"\n}", fillVariables("void f() {\n"+text+"\n}"))
	}
	const outside = "struct pair { float a; };\nnamespace n { float b; }\nfloat c;"
	require.Equal(t, outside, fillVariables(outside))
}

// Accesses outside of a thread's own variables are found behind pointers.
func TestOwnVariables(t *testing.T) {
	for body, want := range map[string]struct {
		offset int64
		size   int
		write  bool
	}{
		"float v[4] = {};\nfloat* p = v;\np[i / 8] = 1;\ny[i] = v[0];":                   {16, 16, true},
		"float v[4] = {};\nfloat* p = v + 3;\ny[i] = p[-int(i / 9)];":                    {-4, 16, false},
		"uchar v[5] = {};\nuchar* p = v;\ny[i] = p[i / 7];":                              {5, 5, false},
		"struct { uint n; float v[3]; } s = {};\nfloat* p = s.v;\ny[i] = p[i / 10 + 0];": {16, 16, false},
	} {
		r := runBody(t, body)
		require.Len(t, r.Findings, 1, body)
		f := r.Findings[0]
		require.Equal(t, OutOfOwn, f.Kind, body)
		require.Equal(t, want.offset, f.Offset, body)
		require.Equal(t, want.size, f.Detail, body)
		require.Equal(t, want.write, f.Write, body)
	}
}

// Signed arithmetic that overflows is found. Unsigned arithmetic may wrap around, unless the result is an index.
func TestOverflow(t *testing.T) {
	for body, line := range map[string]int{
		"int n = 1 << 26;\nn *= int(i);\ny[i] = n;":                                4,
		"uint n = 1u << 29;\ny[i] = x[i * n];":                                     4,
		"const uint n = 1u << 29, z = 0;\nuint at = i * n + z;\ny[i] = x[at + z];": 4,
		"uint n = 1u << 26;\nn *= i;\ny[i] = n;":                                   0,
		"uint h = i * 2654435761u;\ny[i] = x[h % 40];":                             0,
		"uint n = 1;\ny[i] = x[i - n + 1];":                                        0,
	} {
		r := runBody(t, body)
		var lines []int
		for _, f := range r.Findings {
			if f.Kind == Overflow {
				lines = append(lines, f.Path[0].Line)
			}
		}
		if line == 0 {
			require.Empty(t, lines, body)
		} else {
			require.Equal(t, []int{line}, lines, body)
		}
	}
}

func TestCheckIndices(t *testing.T) {
	const w = "mlxg::checker::wide("
	for text, want := range map[string]string{
		"x[i * n + p.a]":             "x[mlxg::checker::index(i * n + p.a, " + w + "i)*" + w + "n)+" + w + "p.a))]",
		"f(x)[(i+1)*2]":              "f(x)[mlxg::checker::index((i+1)*2, (" + w + "i)+" + w + "1))*" + w + "2))]",
		";const uint k = i * n;x[k]": ";const uint k = i * n; mlxg::checker::index(k, " + w + "i)*" + w + "n));x[k]",

		"x[i]":                      "",
		"x[i % n]":                  "",
		"x[f(i) + 1]":               "",
		"x[(uint)i + 1]":            "",
		"x[y[i] + 1]":               "",
		"[i, n](int k) {}":          "",
		";uint k = i * n;x[k % 64]": "",
	} {
		if want == "" {
			want = text
		}
		require.Equal(t, want, checkIndices(text))
	}
}
