package msl

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// generated wraps a header and a body as MLX does, with an input w in constant memory, an input x and
// an output y in device memory, and one of dimension 0.
func generated(header, body string) string {
	return header + `template <typename T, int N>
[[kernel]] void custom_kernel_test(
  const device T* x [[buffer(0)]],
  const constant float* w [[buffer(1)]],
  const constant float& eps [[buffer(2)]],
  device float* y [[buffer(3)]],
  uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
  uint thread_index_in_simdgroup [[thread_index_in_simdgroup]]) {
` + body + `
}

template [[host_name("custom_kernel_test")]] [[kernel]] decltype(custom_kernel_test<float, 4>) custom_kernel_test<float, 4>;
`
}

// needClang skips a test if the machine has no clang.
func needClang(t *testing.T) {
	t.Helper()
	if _, err := Clang(); err != nil {
		skip.Missing(t, skip.Clang, err)
	}
}

// addressSpacePairs holds violations, each with a corrected twin.
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
		name:       "an atomic operation on plain memory of another space",
		header:     "inline void count(device atomic_uint* p) { atomic_fetch_add_explicit(p, 1u, memory_order_relaxed); }\n",
		wrong:      "  threadgroup atomic_uint n; count(&n);",
		right:      "  threadgroup atomic_uint n; atomic_fetch_add_explicit(&n, 1, memory_order_relaxed); count((device atomic_uint*)y);",
		wantLineOf: "count(&n)",
	},
	{
		name:       "a matrix loaded through a wrong pointer",
		header:     "template <typename M> void tile(thread M& m, const threadgroup float* p) { simdgroup_load(m, p, 8); }\n",
		wrong:      "  simdgroup_float8x8 m; tile(m, y);",
		right:      "  threadgroup float s[64]; simdgroup_float8x8 m; tile(m, s); simdgroup_store(m, y, 8, ulong2(0, 0));",
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
		name:       "a member function that names no space on a device object",
		header:     "struct S { float a; float get() const { return a; } thread S& operator+=(S s) { a += s.a; return *this; } };\n",
		wrong:      "  device S* s = (device S*)y; y[0] = s[0].get();",
		right:      "  device S* s = (device S*)y; S c = s[0]; c += s[1]; y[0] = c.get() + S{1}.get();",
		wantLineOf: "s[0].get()",
	},
	{
		name:          "numbers of two types to a function that Metal has for each",
		wrong:         "  uint n = 3; y[0] = min(n, 2);",
		right:         "  uint n = 3; int k = 2; y[0] = min(n, 2u) + min(int(n), k) + max(float4(n), 0).x + pow(y[0], 2) + clamp(y[0], 0.0, 1.0f) + abs(k) + sqrt(half(k)) + max(bfloat(n), bfloat(1)) + max(uchar(n), uchar(1)) + max(n > 1, 2);",
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
		name:       "a constant table to a device helper",
		header:     "constant float table[2] = {1.0f, 2.0f};\ninline float first(const device float* p) { return p[0]; }\ninline float first1(constant float* p) { return p[0]; }\n",
		wrong:      "  y[0] = first(table);",
		right:      "  y[0] = first1(table);",
		wantLineOf: "first(table)",
	},
	{
		name:       "a device object to a thread reference",
		header:     "struct S { float a; S(float v) : a(v) {} };\ninline float get(const thread S& s) { return s.a; }\n",
		wrong:      "  y[0] = get(*(device S*)y);",
		right:      "  S s(1); y[0] = get(s) + get(S(2)) + get(3);",
		wantLineOf: "get(*(device S*)y)",
	},
	{
		name:       "a temporary to a device reference",
		header:     "inline float get(const device float& s) { return s; }\ninline float put(const thread float& s, thread const float2& v) { return s + v.x; }\n",
		wrong:      "  y[0] = get(1.0f);",
		right:      "  y[0] = get(y[1]) + put(1.0f, float2(1, 2)) + put(y[0] + 1, 2 * float2(eps));",
		wantLineOf: "get(1.0f)",
	},
	{
		name: "a temporary to overloads",
		header: "inline float get(const device float& s) { return s; }\ninline float get(const threadgroup float& s) { return s; }\n" +
			"inline float both(const device float& s) { return s; }\ninline float both(const thread float& s) { return s; }\n",
		wrong:      "  y[0] = get(1.0f);",
		right:      "  y[0] = both(1.0f) + both(y[1]);",
		wantLineOf: "get(1.0f)",
	},
	{
		name:       "a structure in constant memory to a helper",
		header:     "struct P { uint n; float a; };\ninline float use(constant P& p) { return p.a + p.n; }\ninline float use2(device const P& p) { return p.a; }\n" + view,
		wrong:      "  decltype(*mlxg_view<P>(x)) p = *mlxg_view<P>(x);\n  y[0] = use(p);",
		right:      "  decltype(*mlxg_view<P>(w)) p = *mlxg_view<P>(w); decltype(*mlxg_view<P>(x)) q = *mlxg_view<P>(x); y[0] = use(p) + use2(q);",
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
			findings, err := CheckAddressSpaces(context.Background(), text)
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
			findings, err = CheckAddressSpaces(context.Background(), generated(header, p.right))
			require.NoError(t, err)
			require.Empty(t, findings)
		})
	}
}

// A construct outside the check's vocabulary is an error, not a pass, and hides no finding elsewhere.
func TestCheckDoesNotPassUnread(t *testing.T) {
	needClang(t)
	var unchecked *UncheckedError
	findings, err := CheckAddressSpaces(context.Background(),
		generated("", "  y[0] = unheard_of(x);\n  threadgroup float b[2];\n  device float* p = b;"))
	require.ErrorAs(t, err, &unchecked)
	require.Len(t, unchecked.Diagnostics, 1)
	require.Equal(t, 9, unchecked.Diagnostics[0].Line)
	require.Len(t, findings, 1)
	require.Equal(t, 11, findings[0].Line)

	_, err = CheckAddressSpaces(context.Background(), generated("#if 1\n", "  y[0] = 1;\n#else\n"))
	require.Error(t, err)

	whole := generated("", "  y[0] = 1;")
	beforeInstantiation, _, found := strings.Cut(whole, "template [[")
	require.True(t, found)
	_, err = CheckAddressSpaces(context.Background(), beforeInstantiation)
	require.ErrorContains(t, err, "never instantiated")

	_, err = CheckAddressSpaces(context.Background(), generated("#error stop\n", "  y[0] = 1;"))
	require.Error(t, err)

	// What the preprocessor hides with all of the kernel is not a pass either, whether the text decides
	// that or the check's own macros do.
	_, err = CheckAddressSpaces(context.Background(), "#ifdef NEVER\n"+generated("", "  device float* p = w;")+"#endif\n")
	require.ErrorContains(t, err, "the text has no kernel")
	_, err = CheckAddressSpaces(context.Background(), "#ifndef FLT_MAX\n"+generated("", "  device float* p = w;")+"#endif\n")
	require.ErrorContains(t, err, "did not reach the kernel's body")
}

// Names of a branch that is left out say nothing about the one that is read.
func TestCheckOfNamesInBranches(t *testing.T) {
	needClang(t)
	findings, err := CheckAddressSpaces(context.Background(), generated(`#if __METAL_VERSION__ >= 320
using messenger = metal::os_log;
#define where device
#else
struct messenger {
  constexpr messenger(constant char*) constant {}
  template <typename... A>
  void write(constant char*, A...) const thread {}
  template <typename... A>
  void write(constant char*, A...) const constant {}
};
#define where threadgroup
#endif
constant messenger messages("one");
inline void put(where float* p) { p[0] = 1; }
`, "  threadgroup float b[2]; put(b); y[0] = b[0]; messages.write(\"two\", 2);"))
	require.NoError(t, err)
	require.Empty(t, findings)
}

// Vocabulary that must be read without any error.
func TestCheckReadsMetal(t *testing.T) {
	needClang(t)
	texts := map[string]string{
		"vectors": `  float4 v = float4(1.0f, 2.0f, 3.0f, 4.0f); half4 h = half4(v); float3 u = float3(v.xy, 1.0f);
  v.xyz = u * 2.0f; uint2 i = uint2(thread_position_in_threadgroup.xy); v = vec<float, 4>(u, 1); v += float4(h);
  float4 z = float4(0); z = float4{1, 2, 3, 4}; y[i.x] = v.x + dot(v, z) + length(u) + float(h.w) + z[2] + metal::float2(1).y;
  auto c = static_cast<float4>(h); bool4 b = bool4(true); if (all(v == z) || any(isnan(v))) y[1] = c.x + b.x;
  y[2] = float4(1).x; float a[4] = {float2(1, 2).x, 2}; y[3] = a[0]; packed_float3 pf = packed_float3(1, 2, 3); y[4] = pf.z;`,
		"initialization": `  float2 v(eps, 2); half4 h(half2(1, 2), 3, 4), g(5); const short2 o((N % 3) * 2, N / 3); vec<float, 3> f(v, 1); pair p(v.x, 2);
  wide q{v, v}; float4 z{v.xy, 1, 2}; metal::float2 m(1), n = float2(3, 4); float a(1), b(2); float3 c(float(h.x), v); uint2 e{1, 2}; y[0] = float(g.x) + o.y + f.z + p.x + q.w;
  y[1] = sum3({1, 2, 3}) + sum3({e.x, e.y, 3u}) + params({2, 3}) + params_of({4, 5.0f}) + one({6}) + one_or_three({1, 2, 3}) + one_or_three(7) + z.x + m.x + n.y + a + b + c.z;
  float w2 = 2.5 * v.x + 1e-3 * z.y + 0x1p3 + .5 * h.x; y[2] = w2; float2 local_prototype(float a, float2 b); y[3] = Held(2, v).v.x;`,
		"more initialization": `  float4 v = {0}, u = {1, 2, 3, 4}, z{}; uint2 n = {N}; y[0] = v.x + u.y + z.x + n.x;
  float2x2 m = float2x2(1); m *= 2; m *= m; m = -m; y[1] = m[0][0] + (is_scalar<half>::value ? 1 : 2);
  simdgroup_float8x8 s = make_filled_simdgroup_matrix<float, 8>(0.f); simdgroup_store(s, y);
  threadgroup struct { float a[4]; } shared; shared.a[0] = 1; y[2] = shared.a[0] + unpack_snorm2x16_to_float(1).x;`,
		"logging": `  constexpr constant os_log logger("a", "b"); logger.log_debug("%f", y[0]); y[0] = 1;`,
		"mathematics": `  float a = metal::exp(eps) + metal::precise::rsqrt(eps) + fast::sin(eps) + fma(eps, 2.0f, 1) + max(1.0f, eps) + pow(eps, 2);
  y[0] = clamp(a, 0.0f, 1.0f) + select(a, 1.0f, a > 0) + mix(a, 2.0f, 0.5f) + INFINITY + numeric_limits<float>::max();
  half q = 1.0h; bfloat16_t r = bfloat16_t(2.0f); y[1] = float(q) + float(r) + as_type<float>(as_type<uint>(a)) + M_PI_F + popcount(7u);`,
		"threads": `  float s = simd_sum(eps) + simd_shuffle_xor(eps, 4) + simd_broadcast(eps, 0) + simd_prefix_inclusive_sum(eps) + quad_sum(eps);
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device); simdgroup_barrier(mem_flags::mem_none);
  if (simd_any(s > 0) && simd_is_first()) y[0] = s; simd_vote vote = simd_ballot(true); y[1] = (uint)(simd_vote::vote_t)vote;`,
		"types": `  T a = T(x[0]); float local = 1, global = 2; y[0] = local + global + a; size_t n = sizeof(T); int64_t m = n; y[1] = m;
  struct P { float a; float2 b; }; P p; p.a = 1; P q = p; y[2] = q.a; constexpr int k = N * 2; float z[k]; z[0] = 1; y[3] = z[0];
  thread float* tp = z; thread auto& tr = z[1]; tr = *tp; for (int i = 0; i < N; ++i) { y[i] = tr; } y[4] = is_same_v<T, float> ? 1 : 0;`,
		"words of OpenCL": `  threadgroup float local[4], global[4]; float generic[2] = {1, 2}, pipe = 3; local[0] = pipe; global[0] = generic[1];
  threadgroup float* p = local + 1; *p = 0; y[0] = local[0] + global[0];`,
		"matrices": `  simdgroup_matrix<float, 8, 8> a, b, c = simdgroup_matrix<float, 8, 8>(0); threadgroup float s[64];
  simdgroup_load(a, y, 8); simdgroup_load(b, s, 8, ulong2(0, 0), true); simdgroup_multiply_accumulate(c, a, b, c);
  c.thread_elements()[0] = 1; simdgroup_store(c, s, 8); float4x4 m = float4x4(1); y[0] = (m * float4(1)).x;`,
		"loops": `  #pragma clang loop unroll(full)
  for (uint i = thread_index_in_simdgroup; i < 8u; i += 32u) { [[maybe_unused]] float q = w[i]; y[i] = q * float(x[i]); }
  switch (N) { case 1: { y[0] = 1; break; } default: break; } do { y[1] = 2; } while (false);
  auto f = [&](float v) { return v + eps; }; y[2] = f(1.0f);
  float q[2]; int i[2]; float4 r[2]; Sort<float, int>::sort(q, i, r); y[3] = small(turn(complex64_t(1)).real); uniform<uint> k = make_uniform(3u); y[k] = 1;`,
	}
	header := `#define HELP(name, op) inline float name(float a, float b) { return a op b; }
HELP(plus_, +)
#define DEV device
constant constexpr int kWidth = 4;
static constant constexpr const short kRows = 8;
enum Mode : uint { first, second };
using acc_t = float;
typedef vec<float, 2> pair;
template <typename U, int M> struct Loader {
  static constexpr constant short rows = M; const device U* source; threadgroup U* target; short lane;
  Loader(const device U* s, threadgroup U* t, ushort l) : source(s), target(t), lane(l) {}
  void load() const { target[lane] = source[lane]; }
};
template <typename U> inline float head(DEV const U* p) { return float(static_cast<U>(p[0])); }
template <typename U> inline float head(constant U* p) { return acc_t(p[0]); }
inline pair both(float a) { return pair(a, a); }
struct Params { uint a; float b; };
inline float use(constant Params& p) { Params q = p; return q.b + p.a; }
template <typename V, typename I> struct Sort {
  static void sort(thread V (&vals)[2], thread I (&idxs)[2], const thread float4 (&rows)[2]) { vals[0] = V(*(thread V*)(&idxs[0])) + rows[0].x; }
};
struct Small { template <typename U> Small(U v) thread { bits = uint8_t(v); } operator float() const thread { return bits; } uint8_t bits; };
inline float small(float v) { return float(Small(v)) + Small(v).bits; }
inline complex64_t turn(complex64_t v) { constexpr complex64_t i = complex64_t(0.0f, 1.0f); return v * complex64_t(0, 1); }
typedef vec<float, 4> wide;
inline uint sum3(uint3 v) { return v.x; }
inline float params(Params p) { return p.b; }
inline float params_of(const thread Params& p) { return p.b; }
inline float one(float a) { return a; }
inline float one_or_three(long a) { return a; }
inline float one_or_three(uint3 a) { return a.z; }
template <typename U> float2 halves(U v) { float2 w(v, v); return 0.5 * w; }
struct Held { float a; float2 v; Held(float b, float2 c) : a(b), v(c) {} };
inline float sum(const thread float* p) { return p[0]; }
inline float anysum(float p) { return p; }
`
	for name, body := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			findings, err := CheckAddressSpaces(context.Background(), generated(header, body))
			var unchecked *UncheckedError
			if errors.As(err, &unchecked) {
				for _, d := range unchecked.Diagnostics {
					t.Log(d, d.Notes)
				}
			}
			require.NoError(t, err)
			require.Empty(t, findings)
		})
	}
}

// What MLX generates for this project's shaders and for the samples has no finding.
func TestCheckShaders(t *testing.T) {
	needClang(t)
	for name, text := range hostTexts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			findings, err := CheckAddressSpaces(context.Background(), text)
			require.NoError(t, err)
			require.Empty(t, findings)
		})
	}
}

func TestCheckWithoutClang(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := CheckAddressSpaces(context.Background(), generated("", "  y[0] = 1;"))
	require.ErrorIs(t, err, ErrNoClang)
	require.ErrorContains(t, err, "apt-get install clang")

	require.NoError(t, os.WriteFile(os.Getenv("PATH")+"/clang", []byte("#!/bin/sh\necho 'error: unknown target' >&2\nexit 1\n"), 0o700))
	_, err = CheckAddressSpaces(context.Background(), generated("", "  y[0] = 1;"))
	require.ErrorContains(t, err, "unknown target")

	// A compiler that says nothing has not read the text.
	require.NoError(t, os.WriteFile(os.Getenv("PATH")+"/clang", []byte("#!/bin/sh\nexit 0\n"), 0o700))
	_, err = CheckAddressSpaces(context.Background(), generated("", "  y[0] = 1;"))
	require.ErrorContains(t, err, "did not reach the kernel's body")
}

func TestCheckStops(t *testing.T) {
	needClang(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := CheckAddressSpaces(ctx, generated("", "  y[0] = 1;"))
	require.ErrorIs(t, err, context.Canceled)
}
