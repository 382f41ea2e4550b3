package sanitizer

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// check runs a native kernel with one input x and one output y.
func check(t *testing.T, text string, l Launch, x Array) []Finding {
	t.Helper()
	k, err := loadNative(t, "#include <metal_stdlib>\nusing namespace metal;\n"+text, NativeOptions{}).Kernel("")
	require.NoError(t, err)
	r, err := k.Sanitize(t.Context(), l, Config{}, x)
	require.NoError(t, err)
	return r.Findings
}

func TestWrongValues(t *testing.T) {
	const text = `kernel void f(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  y[i] = 2 * x[i];
}`
	launch := func(e Expected) Launch {
		return Launch{
			Grid: [3]int{4}, Threadgroup: [3]int{4}, Outputs: []Output{{Shape: []int{4}, DType: Float32}},
			Expected: map[string]Expected{"y": e},
		}
	}
	nan, inf := math.NaN(), math.Inf(1)
	x := floats(1, -2, float32(inf), float32(nan))
	require.Empty(t, check(t, text, launch(Expected{Values: []float64{2, -4, inf, nan}}), x))
	require.Empty(t, check(t, text, launch(Expected{Values: []float64{2.0000009, -4, inf, nan}}), x), "2ε of 4")
	require.Empty(t, check(t, text, launch(Expected{Values: []float64{2.1, -4, inf, nan}, Tolerance: 0.1}), x))

	found := check(t, text, launch(Expected{Values: []float64{2, -4.001, 1, nan}}), x)
	require.Len(t, found, 1)
	f := found[0]
	require.Equal(t, FindingWrongValue, f.Kind)
	require.Equal(t, SeverityError, f.Severity)
	f.Site.Column = 0 // depends on the compiler
	require.Equal(t, Site{File: "f.metal", Line: 4, Function: "f"}, f.Site)
	require.Equal(t, "y", f.Buffer)
	require.Equal(t, 1, f.Element)
	require.Equal(t, [3]int{1, 0, 0}, f.Threads[0].Thread)
	require.Contains(t, f.Message, "y[1] is -4, and -4.001 is expected, with an error of at most")
	require.Contains(t, f.Message, "2 of 4 elements differ")
	for _, values := range [][]float64{{2, -4, -inf, nan}, {2, -4, inf, 0}, {2, nan, inf, nan}} {
		require.Len(t, check(t, text, launch(Expected{Values: values}), x), 1, values)
	}
}

func TestExpectationsThatDoNotFit(t *testing.T) {
	k, err := loadNative(t, "kernel void f(device int* y [[buffer(0)]]) { y[0] = 0; }", NativeOptions{}).Kernel("f")
	require.NoError(t, err)
	for part, e := range map[string]map[string]Expected{
		"values are expected of z, which is no output: the outputs are [y]": {"z": {Values: []float64{1}}},
		"2 values are expected of the output y, which has 1 elements":       {"y": {Values: []float64{1, 2}}},
		"the tolerance of the output y is -1; it must be positive":          {"y": {Values: []float64{1}, Tolerance: -1}},
	} {
		_, err := k.Sanitize(t.Context(), Launch{
			Grid: [3]int{1}, Threadgroup: [3]int{1}, Outputs: []Output{{Shape: []int{1}, DType: Int32}}, Expected: e,
		}, Config{})
		require.ErrorContains(t, err, part)
	}
}

// The rules are those of the section on attributes for kernel function input arguments.
func TestPositionTypes(t *testing.T) {
	const (
		grid, group, groups = "[[thread_position_in_grid]]", "[[thread_position_in_threadgroup]]", "[[threadgroup_position_in_grid]]"
		index, size         = "[[thread_index_in_threadgroup]]", "[[threads_per_threadgroup]]"
	)
	for parameters, part := range map[string]string{
		"uint3 a " + groups + ", ushort3 b " + group + ", ushort3 c " + size + ", ushort d " + index: "",
		"uint a " + grid + ", ushort b " + group + ", uint c [[threads_per_grid]]":                   "",
		"uint2 a " + grid + ", uint b " + group:                                                      "uint b " + group + " beside uint2 a " + grid + ": give all",
		"uint3 a " + groups + ", uint2 b " + group:                                                   "uint2 b",
		"uint a " + grid + ", ushort b [[threads_per_grid]]":                                         "give both the same type",
		"ushort2 a " + group + ", uint2 b " + size:                                                   "give both the same type",
		"uint a " + group + ", ushort b " + index:                                                    "the index must be a uint",
	} {
		k, err := loadNative(t, "kernel void f(device int* y [[buffer(0)]], "+parameters+") { y[0] = 0; }", NativeOptions{}).Kernel("f")
		require.NoError(t, err)
		found := k.positionTypes()
		if part == "" {
			require.Empty(t, found, parameters)
			continue
		}
		require.Len(t, found, 1, parameters)
		require.Equal(t, FindingPositionType, found[0].Kind)
		require.Contains(t, found[0].Message, part)
	}
}

// Constructs that look like bugs or that C++ lacks are correct: an array of one element at the end of a structure that
// lies at the end of its memory, code that the preprocessor excludes, tables in constant memory, and values of swizzles.
func TestCorrectNativeKernels(t *testing.T) {
	l := Launch{
		Grid: [3]int{4}, Threadgroup: [3]int{4}, Outputs: []Output{{Shape: []int{4}, DType: Float32}},
		Expected: map[string]Expected{"y": {Values: []float64{2, 3, 4, 5}}},
	}
	for name, text := range map[string]string{
		"flexible array": `struct list { float scale; float data[1]; };
kernel void f(device const list* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  y[i] = x->scale * x->data[i];
}`,
		"tables in constant memory": `struct pair { half a; float b; };
constant pair p = {1.0h, 2.0f};
constant half4 h[2] = {half4(1), half4(2)};
constant half2 g[2] = {{1, 2}, {3, 4}};
constant float4 f4 = float4(1, 2, 3, 4) * 2.0f;
constant float one = as_type<float>(0x3f800000);
constant constexpr float ones[2] = {as_type<float>(0x3f800000), 1};
constant float4x4 m = float4x4(2.0f);
constant array<float, 4> t = {1, 2, 3, 4};
kernel void f(constant float4x4* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const float sum = p.b + float(p.a) + h[i & 1].x + g[i & 1].y + f4[i] + m[i][i] + m[i][(i + 1) & 3] + t[i] + t.size();
  const float want = 2 + 1 + (1 + (i & 1)) + (2 + 2 * (i & 1)) + 2 * (i + 1) + 2 + 0 + (i + 1) + 4;
  y[i] = (sum - want + one) * ones[i & 1] + x[0][0][i];
}`,
		"declarations": `namespace m = metal;
struct ray;
template <typename T> struct scaled;
template <> struct scaled<float> { float v; scaled(float a) : v(a) {} };
struct ray { float t; ray(float a) : t(a) {} };
kernel void f(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  ray r(x[i + 1]);
  y[i] = m::max(scaled<float>(r.t).v, 0.0f);
}`,
		"swizzles": `#define SET(a, b) a = b
#define TURNED(v) v.yx
struct color { float3 bg; };
template <typename T> T twice(T v) { return v + v; }
template <typename T, int N> T total(vec<T, N> v) { T sum = 0; for (int i = 0; i < N; i++) sum += v[i]; return sum; }
kernel void f(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint3 at [[thread_position_in_grid]]) {
  float4 v = float4(1, 2, 3, 4);
  v.xy = v.yx;              // 2 1 3 4
  SET(v.zw, v.wz);          // 2 1 4 3
  thread float4* q = &v;
  q->xw += 1;               // 3 1 4 4
  auto a = v.xy;
  a.x += 1;                 // 4 1
  color c = {v.xyz.zyx};    // 4 1 3
  auto bg = c.bg;
  const auto b = at.x < 9 ? q->zx : v.yy;  // 4 3
  const float sum = total(v.xyz) + twice(v.yw).y + a.x + TURNED(a).x + bg.z + b.y + simd_shuffle_xor(v.zw, 1).y +
      (as_type<uint2>(half4(v).xyzw.xyxy).x - as_type<uint>(half2(3, 1)));
  y[at.xy.x] = x[at.x + 1] + sum - (8 + 8 + 4 + 1 + 3 + 3 + 4);
}`,
		"excluded code": `kernel void f(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
#if 0
  ushort2 n [[threads_per_grid]],
#endif
  uint i [[thread_position_in_grid]]) {
#ifdef NEVER
  threadgroup float unread[4];
  unread[i] = x[i + 9];
  goto nowhere;
#elif __METAL_VERSION__ < 300
  y[i] = max(1, x[i + 1]) << 40;
#else
  y[i] = x[i + 1];
#endif
}`,
	} {
		require.Empty(t, check(t, text, l, floats(1, 2, 3, 4, 5)), name)
	}
}

func TestOneFindingForOneCause(t *testing.T) {
	at := func(line int) Site { return Site{File: "f.metal", Line: line, Function: "f"} }
	finding := func(kind FindingKind, buffer string, line, other int) Finding {
		return Finding{Kind: kind, Severity: kind.Severity(), Site: at(line), Other: at(other), Buffer: buffer}
	}
	elsewhere := finding(FindingRace, "c", 10, 20)
	elsewhere.Threads[1].Group[0] = 1
	for name, c := range map[string]struct {
		list []Finding
		want []int // lines of the findings
	}{
		"one barrier between several accesses": {
			[]Finding{finding(FindingRace, "a", 20, 10), finding(FindingRace, "a", 21, 10), finding(FindingRace, "b", 11, 22)}, []int{20},
		},
		"two barriers":            {[]Finding{finding(FindingRace, "a", 20, 10), finding(FindingRace, "b", 40, 30)}, []int{20, 40}},
		"another threadgroup":     {[]Finding{finding(FindingRace, "a", 20, 10), elsewhere}, []int{20, 10}},
		"two buffers on one line": {[]Finding{finding(FindingRace, "a", 10, 10), finding(FindingRace, "b", 10, 10)}, []int{10, 10}},
		"the general case":        {[]Finding{finding(FindingLockstep, "a", 12, 11), finding(FindingRace, "a", 20, 10)}, []int{20}},
		"a wrapped index":         {[]Finding{finding(FindingOutOfBounds, "a", 12, 0), finding(FindingOverflow, "", 10, 0)}, []int{10}},
		"a dropped element of the store": {
			[]Finding{
				finding(FindingNeverRead, "a", 12, 0), finding(FindingDroppedElement, "a", 12, 0),
				finding(FindingNeverRead, "a", 20, 0),
			},
			[]int{12, 20},
		},
		"errors first":                  {[]Finding{finding(FindingShift, "", 10, 0), finding(FindingMisaligned, "a", 20, 0)}, []int{20, 10}},
		"a value that was not computed": {[]Finding{finding(FindingUnwrittenOutput, "y", 1, 0), finding(FindingCrash, "", 5, 0)}, []int{5}},
	} {
		var lines []int
		for _, f := range causes(c.list) {
			lines = append(lines, f.Site.Line)
		}
		require.Equal(t, c.want, lines, name)
	}
	merged := causes([]Finding{finding(FindingRace, "a", 20, 10), finding(FindingRace, "a", 21, 10)})
	require.Equal(t, []Site{at(21)}, merged[0].More)
	require.False(t, strings.Contains(merged[0].String(), "21"))
}
