package addrspace

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// generated returns a text as MLX generates it, with an input w in constant memory, an input x and an output y in
// device memory, and a scalar input eps.
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

// castConst is the cast that translate.MLX adds to headers.
const castConst = "template <typename V> const device V* mlxg_cast_const(const device void* p) { return (const " +
	"device V*)p; } " +
	"template <typename V> constant V* mlxg_cast_const(const constant void* p) { return (constant V*)p; }\n"

// needClang skips a test if the machine has no clang.
func needClang(t *testing.T) {
	t.Helper()
	if _, err := Clang(); err != nil {
		skip.Missing(t, skip.Clang, err)
	}
}

// A construct that clang rejects makes the check incomplete, and hides no finding elsewhere.
func TestCheckDoesNotPassUnreadText(t *testing.T) {
	needClang(t)
	var unchecked *UncheckedError
	findings, err := Check(context.Background(),
		generated("", "  y[0] = unheard_of(x);\n  threadgroup float b[2];\n  device float* p = b;"))
	require.ErrorAs(t, err, &unchecked)
	require.Len(t, unchecked.Diagnostics, 1)
	require.Equal(t, 9, unchecked.Diagnostics[0].Line)
	require.Len(t, findings, 1)
	require.Equal(t, 11, findings[0].Line)

	_, err = Check(context.Background(), generated("#if 1\n", "  y[0] = 1;\n#else\n"))
	require.Error(t, err)

	whole := generated("", "  y[0] = 1;")
	beforeInstantiation, _, found := strings.Cut(whole, "template [[")
	require.True(t, found)
	_, err = Check(context.Background(), beforeInstantiation)
	require.ErrorContains(t, err, "never instantiated")

	_, err = Check(context.Background(), generated("#error stop\n", "  y[0] = 1;"))
	require.Error(t, err)

	// A text whose kernel the preprocessor excludes does not pass, whether the text or the prelude's macros exclude it.
	_, err = Check(context.Background(), "#ifdef NEVER\n"+generated("", "  device float* p = w;")+"#endif\n")
	require.ErrorContains(t, err, "the text has no kernel")
	_, err = Check(context.Background(), "#ifndef FLT_MAX\n"+generated("", "  device float* p = w;")+"#endif\n")
	require.ErrorContains(t, err, "did not reach the kernel's body")
}

// Names of an excluded branch do not affect the branch that is read.
func TestCheckOfNamesInBranches(t *testing.T) {
	needClang(t)
	findings, err := Check(context.Background(), generated(`#if __METAL_VERSION__ >= 320
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

// The prelude declares these functions and types.
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
  thread float* tp = z; thread auto& tr = z[1]; tr = *tp; for (int i = 0; i < N; ++i) { y[i] = tr; } y[4] = is_same_v<T, float> ? 1 : 0;
  bfloat c = 1; const bfloat d = 2; float u[4 / sizeof(bfloat)], v[4 / sizeof(c) + 4 / sizeof(d) - 3]; u[0] = v[0] = sizeof(z);
  struct alignas(4) Pair { bfloat values[2]; } both; both.values[0] = c; y[5] = u[0] + both.values[0];`,
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
			findings, err := Check(context.Background(), generated(header, body))
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

func TestCheckWithoutClang(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Check(context.Background(), generated("", "  y[0] = 1;"))
	require.ErrorIs(t, err, ErrNoClang)
	require.ErrorContains(t, err, "apt-get install clang")

	require.NoError(t, os.WriteFile(os.Getenv("PATH")+"/clang",
		[]byte("#!/bin/sh\necho 'error: unknown target' >&2\nexit 1\n"), 0o700))
	_, err = Check(context.Background(), generated("", "  y[0] = 1;"))
	require.ErrorContains(t, err, "unknown target")

	// A compiler without output has not read the text.
	require.NoError(t, os.WriteFile(os.Getenv("PATH")+"/clang", []byte("#!/bin/sh\nexit 0\n"), 0o700))
	_, err = Check(context.Background(), generated("", "  y[0] = 1;"))
	require.ErrorContains(t, err, "did not reach the kernel's body")
}

func TestCheckStopsWhenCanceled(t *testing.T) {
	needClang(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Check(ctx, generated("", "  y[0] = 1;"))
	require.ErrorIs(t, err, context.Canceled)
}
