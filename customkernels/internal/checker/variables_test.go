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

// Signed arithmetic that overflows is found. Unsigned arithmetic may wrap around.
func TestOverflow(t *testing.T) {
	r := runBody(t, "int n = 1 << 26;\nn *= int(i);\ny[i] = n;")
	require.Len(t, r.Findings, 1)
	require.Equal(t, Overflow, r.Findings[0].Kind)
	require.Equal(t, Frame{"kernel_of_test", 4}, r.Findings[0].Path[0])
	r = runBody(t, "uint n = 1u << 26;\nn *= i;\ny[i] = n;")
	require.Empty(t, r.Findings)
}
