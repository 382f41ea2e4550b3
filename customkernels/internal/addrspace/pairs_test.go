package addrspace

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// addressSpacePairs holds violations, each with a corrected version.
var addressSpacePairs = []struct {
	name          string
	header        string
	wrong         string
	right         string
	rightHeader   string // "" for the same
	wantLineOf    string // a piece of the line that is reported
	wantInMessage string
}{
	{
		name:       "constant input to a device helper",
		header:     "template <typename T> float first(const device T* p) { return float(p[0]); }\n",
		wrong:      "  y[0] = first(w);",
		right:      "  y[0] = first(x);",
		wantLineOf: "y[0] = first(w)",
	},
	{
		name:       "constant input to a device helper that is no template",
		header:     "inline float first(device const float* p) { return p[0]; }\n",
		wrong:      "  y[0] = first(w);",
		right:      "  y[0] = first(y);",
		wantLineOf: "first(w)",
	},
	{
		name:       "threadgroup pointer to a device helper",
		header:     "inline float first(device const float* p) { return p[0]; }\n",
		wrong:      "  threadgroup float buf[32];\n  y[0] = first(buf);",
		right:      "  threadgroup float buf[32];\n  y[0] = first(y) + buf[0];",
		wantLineOf: "first(buf)",
	},
	{
		name:       "device pointer to a threadgroup helper",
		header:     "template <typename U> U sum(threadgroup U* p, int n) { return p[n]; }\n",
		wrong:      "  y[0] = sum(y, N);",
		right:      "  threadgroup float s[N];\n  y[0] = sum(s, N);",
		wantLineOf: "sum(y, N)",
	},
	{
		name:       "device pointer from a threadgroup array",
		wrong:      "  threadgroup float buf[N];\n  device float* p = buf;\n  p[0] = 1;",
		right:      "  threadgroup float buf[N];\n  threadgroup float* p = buf;\n  p[0] = 1;",
		wantLineOf: "device float* p = buf",
	},
	{
		name:       "array of device pointers in thread memory",
		wrong:      "  threadgroup float buf[8];\n  thread device float* p[2];\n  p[0] = buf; p[0][0] = 1;",
		right:      "  threadgroup float buf[8];\n  thread device float* p[2];\n  p[0] = y; p[0][0] = buf[0] = 1;",
		wantLineOf: "p[0] = buf;",
	},
	{
		name:       "assignment between address spaces",
		wrong:      "  threadgroup float buf[8], c[4];\n  device float* p = y;\n  p = buf;",
		right:      "  threadgroup float buf[8], c[4];\n  device float* p = y;\n  p = y + 1; c[0] = buf[0];",
		wantLineOf: "p = buf;",
	},
	{
		name:       "device pointer from the constant input",
		wrong:      "  const device float* p = w;\n  y[0] = p[0];",
		right:      "  const constant float* p = w;\n  y[0] = p[0];",
		wantLineOf: "const device float* p = w",
	},
	{
		name:        "a thread pointer returned as device",
		header:      "inline device float* pick(thread float* p) { return p; }\n",
		rightHeader: "inline thread float* pick(thread float* p) { return p; }\n",
		wrong:       "  float a[2]; y[0] = pick(a)[0];",
		right:       "  float a[2] = {1, 2}; y[0] = pick(a)[0];",
		wantLineOf:  "return p;",
	},
	{
		name:       "a reference to the wrong space",
		header:     "inline void add(threadgroup float& a, float b) { a += b; }\n",
		wrong:      "  add(y[0], eps);",
		right:      "  threadgroup float s; add(s, eps); y[0] = s;",
		wantLineOf: "add(y[0], eps)",
	},
	{
		name:       "a cast between spaces",
		wrong:      "  threadgroup float s[4];\n  y[0] = ((device float*)s)[0];",
		right:      "  threadgroup float s[4];\n  y[0] = ((threadgroup uint*)s)[0];",
		wantLineOf: "(device float*)s",
	},
	{
		name:       "a reinterpreting cast from constant memory",
		wrong:      "  const device uint4* v = reinterpret_cast<const device uint4*>(w);\n  y[0] = v[0].x;",
		right:      "  const device uint4* v = reinterpret_cast<const device uint4*>(x);\n  y[0] = v[0].x;",
		wantLineOf: "reinterpret_cast<const device uint4*>(w)",
	},
	{
		name:        "a device pointer to an argument without an address space",
		header:      "inline float first(const float* p) { return p[0]; }\n",
		rightHeader: "inline float first(const device float* p) { return p[0]; }\n",
		wrong:       "  y[0] = first(y);",
		right:       "  y[0] = first(y);",
		wantLineOf:  "y[0] = first(y)",
	},
	{
		name:       "a local pointer without an address space",
		wrong:      "  float* p = y;\n  p[0] = 1;",
		right:      "  float q[4]; float* p = q;\n  p[0] = 1; y[0] = q[0];",
		wantLineOf: "float* p = y",
	},
	{
		name: "a member pointer of another space",
		header: `struct Row { const device float* p; float get(int i) const { return p[i]; } };
`,
		wrong:      "  Row r; r.p = w; y[0] = r.get(0);",
		right:      "  Row r; r.p = y; y[0] = r.get(0);",
		wantLineOf: "r.p = w",
	},
	{
		name: "in a helper that is only instantiated by the kernel",
		header: `template <typename P> float load(P p) { const device float* q = p; return q[0]; }
`,
		wrong:      "  y[0] = load(w);",
		right:      "  y[0] = load(y);",
		wantLineOf: "const device float* q = p",
	},
	{
		name: "an atomic operation on plain memory of another space",
		header: "inline void count(device atomic_uint* p) { atomic_fetch_add_explicit(p, 1u, " +
			"memory_order_relaxed); }\n",
		wrong: "  threadgroup atomic_uint n; count(&n);",
		right: "  threadgroup atomic_uint n; atomic_fetch_add_explicit(&n, 1, memory_order_relaxed); " +
			"count((device atomic_uint*)y);",
		wantLineOf: "count(&n)",
	},
	{
		name: "a matrix loaded through a wrong pointer",
		header: "template <typename M> void tile(thread M& m, const threadgroup float* p) { simdgroup_load(m, " +
			"p, 8); }\n",
		wrong: "  simdgroup_float8x8 m; tile(m, y);",
		right: "  threadgroup float s[64]; simdgroup_float8x8 m; tile(m, s); simdgroup_store(m, y, 8, " +
			"ulong2(0, 0));",
		wantLineOf: "tile(m, y)",
	},
	{
		name:          "a program-scope variable outside constant memory",
		header:        "constexpr int rows = 4;\n",
		rightHeader:   "constant constexpr int rows = 4;\nconstant float table[2] = {1.0f, 2.0f};\n",
		wrong:         "  y[0] = rows;",
		right:         "  y[0] = rows + table[1];",
		wantLineOf:    "constexpr int rows",
		wantInMessage: "constant memory",
	},
	{
		name:          "a program-scope variable that is not constant at all",
		header:        "int rows[2] = {4, 5};\n",
		rightHeader:   "constant int rows[2] = {4, 5}; struct rows_of; int count(int n); using number = int;\n",
		wrong:         "  y[0] = rows[0];",
		right:         "  y[0] = rows[0];",
		wantLineOf:    "int rows",
		wantInMessage: "constant memory",
	},
	{
		name:          "a static member outside constant memory",
		header:        "struct S { static constexpr int rows = 4; };\n",
		rightHeader:   "struct S { static constant constexpr int rows = 4; int n; static int get() { return 1; } };\n",
		wrong:         "  y[0] = S::rows;",
		right:         "  y[0] = S::rows;",
		wantLineOf:    "static constexpr int rows",
		wantInMessage: "constant memory",
	},
	{
		name: "a member function that names no space on a device object",
		header: "struct S { float a; float get() const { return a; } thread S& operator+=(S s) { a += s.a; " +
			"return *this; } };\n",
		wrong:      "  device S* s = (device S*)y; y[0] = s[0].get();",
		right:      "  device S* s = (device S*)y; S c = s[0]; c += s[1]; y[0] = c.get() + S{1}.get();",
		wantLineOf: "s[0].get()",
	},
	{
		name:  "numbers of two types to a function that Metal has for each",
		wrong: "  uint n = 3; y[0] = min(n, 2);",
		right: "  uint n = 3; int k = 2; y[0] = min(n, 2u) + min(int(n), k) + max(float4(n), 0).x + " +
			"pow(y[0], 2) + clamp(y[0], 0.0, 1.0f) + abs(k) + sqrt(half(k)) + max(bfloat(n), bfloat(1)) + " +
			"max(uchar(n), uchar(1)) + max(n > 1, 2);",
		wantLineOf:    "min(n, 2)",
		wantInMessage: "ambiguous",
	},
	{
		name:          "a half and a float to one function",
		wrong:         "  half h = 2; y[0] = max(h, 0.0f);",
		right:         "  half h = 2; y[0] = max(h, 0.0h) + precise::pow(h, 2.0f) + fast::max(h, 0.0f);",
		wantLineOf:    "max(h",
		wantInMessage: "ambiguous",
	},
	{
		name:          "an integer to a function of floats",
		wrong:         "  int n = 2; y[0] = sqrt(n);",
		right:         "  int n = 2; y[0] = sqrt(float(n)) + precise::sqrt(n);",
		wantLineOf:    "sqrt(n)",
		wantInMessage: "ambiguous",
	},
	{
		name:       "a member function for thread memory on a device object",
		header:     "struct S { float a; float get() const thread { return a; } };\n",
		wrong:      "  device S* s = (device S*)y; y[0] = s[0].get();",
		right:      "  device S* s = (device S*)y; S c = s[0]; y[0] = c.get();",
		wantLineOf: "s[0].get()",
	},
	{
		name: "a constant table to a device helper",
		header: "constant float table[2] = {1.0f, 2.0f};\ninline float first(const device float* p) { return " +
			"p[0]; }\ninline float first1(constant float* p) { return p[0]; }\n",
		wrong:      "  y[0] = first(table);",
		right:      "  y[0] = first1(table);",
		wantLineOf: "first(table)",
	},
	{
		name: "a device object to a thread reference",
		header: "struct S { float a; S(float v) : a(v) {} };\ninline float get(const thread S& s) { return s.a; " +
			"}\n",
		wrong:      "  y[0] = get(*(device S*)y);",
		right:      "  S s(1); y[0] = get(s) + get(S(2)) + get(3);",
		wantLineOf: "get(*(device S*)y)",
	},
	{
		name: "a wrong pointer behind a choice of a temporary or a member",
		header: "struct P { float a; };\n" +
			"struct H { P p; P pick(bool b) thread { return b ? P{1} : p; } };\n",
		wrong:      "  H h = {{eps}}; y[0] = h.pick(N > 2).a;\n  device float* q = w;",
		right:      "  H h = {{eps}}; y[0] = h.pick(N > 2).a;",
		wantLineOf: "device float* q = w",
	},
	{
		name: "a temporary to a device reference",
		header: "inline float get(const device float& s) { return s; }\ninline float put(const thread float& s, " +
			"thread const float2& v) { return s + v.x; }\n",
		wrong:      "  y[0] = get(1.0f);",
		right:      "  y[0] = get(y[1]) + put(1.0f, float2(1, 2)) + put(y[0] + 1, 2 * float2(eps));",
		wantLineOf: "get(1.0f)",
	},
	{
		name: "a temporary to overloads",
		header: "inline float get(const device float& s) { return s; }\ninline float get(const threadgroup float& " +
			"s) { return s; }\n" +
			"inline float both(const device float& s) { return s; }\ninline float both(const thread float& s) { " +
			"return s; }\n",
		wrong:      "  y[0] = get(1.0f);",
		right:      "  y[0] = both(1.0f) + both(y[1]);",
		wantLineOf: "get(1.0f)",
	},
	{
		name: "a structure in constant memory to a helper",
		header: "struct P { uint n; float a; };\ninline float use(constant P& p) { return p.a + p.n; }\ninline " +
			"float use2(device const P& p) { return p.a; }\n" + castConst,
		wrong: "  decltype(*mlxg_cast_const<P>(x)) p = *mlxg_cast_const<P>(x);\n  y[0] = use(p);",
		right: "  decltype(*mlxg_cast_const<P>(w)) p = *mlxg_cast_const<P>(w); " +
			"decltype(*mlxg_cast_const<P>(x)) q = *mlxg_cast_const<P>(x); y[0] = use(p) + use2(q);",
		wantLineOf: "y[0] = use(p)",
	},
	{
		name:       "behind a vector's direct initialization",
		wrong:      "  float2 v(1, 2), u(x[0], v.x);\n  threadgroup float2 t[2];\n  device float2* p = t;",
		right:      "  float2 v(1, 2), u(x[0], v.x);\n  threadgroup float2 t[2];\n  t[0] = v + u;",
		wantLineOf: "device float2* p = t",
	},
	{
		name:       "in an argument beside braces",
		header:     "inline float first(uint3 i, device const float* p) { return p[i.x]; }\n",
		wrong:      "  y[0] = first({1, 2, 3}, w);",
		right:      "  y[0] = first({1, 2, 3}, x);",
		wantLineOf: "first({1, 2, 3}, w)",
	},
}

func TestCheckFindsViolations(t *testing.T) {
	needClang(t)
	for _, p := range addressSpacePairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			text := generated(p.header, p.wrong)
			findings, err := Check(context.Background(), text)
			require.NoError(t, err)
			require.Len(t, findings, 1, "%v", findings)
			line := strings.Split(text, "\n")[findings[0].Line-1]
			require.Contains(t, line, p.wantLineOf, findings[0].String())
			require.Contains(t, findings[0].Message, p.wantInMessage)
			require.NotContains(t, findings[0].Message, "__")

			header := p.rightHeader
			if header == "" {
				header = p.header
			}
			findings, err = Check(context.Background(), generated(header, p.right))
			require.NoError(t, err)
			require.Empty(t, findings)
		})
	}
}
