package customkernels

import (
	"math"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A missing compiler is an error, which is not cached: launches succeed once a compiler is installed.
func TestMissingCompilerIsNotCached(t *testing.T) {
	k := inline(t, `#include <metal_stdlib>
using namespace metal;
kernel void later(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  y[i] = x[i] + 41.0f;
}
`)
	x := mlxc.FromSlice([]float32{1})
	t.Setenv("MLXGRAD_CACHE", t.TempDir())
	t.Setenv("CXX", "/nonexistent/compiler")
	require.ErrorIs(t, k.Launch(perElement(x), x)[0].Err(), ErrNoCompiler)
	require.ErrorIs(t, CheckExecutor(), ErrNoCompiler)
	t.Setenv("CXX", "")
	require.Equal(t, []float32{42}, mlxtest.Floats(t, k.Launch(perElement(x), x)[0]))
}

// In Metal the operands of a conditional operator may have two arithmetic types, such as half and float, or may be a
// swizzle and a vector. In C++ these have no common type.
func TestConditionalOperatorsOfTwoTypes(t *testing.T) {
	lib, err := Load(fstest.MapFS{"choose.metal": {Data: []byte(`#include <metal_stdlib>
using namespace metal;
template <typename T>
inline float chosen(T v, bool first) {
  return (first ? v : 0.25f) + (first ? 1 : v) * (first ? v : -1);
}
template <typename T>
kernel void choose(device const T* x [[buffer(0)]], constant uint& n [[buffer(1)]], device T* y [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {
  const T v = i < n ? x[i] : 0;
  const float4 u = float4(i, 1, 2, 3);
  const float2 w = i % 2 == 0 ? u.xy : i < n ? u.zw : 0;
  y[i] = i < n ? chosen(v, i % 2 == 0) + w.x + w.y : -INFINITY;
}`)}}, "choose.metal")
	require.NoError(t, err)
	k, err := lib.Kernel("")
	require.NoError(t, err)
	for _, d := range mlxtest.FloatDTypes {
		l := Launch{
			Grid: [3]int{9}, Threadgroup: [3]int{9}, Template: template("T", d),
			Outputs: []mlxc.Output{{Shape: []int{9}, DType: d}},
		}
		x := mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6, 7, 8}).AsType(d)
		want := []float64{3, 3.25, 9, 1.25, 15, -0.75, 21, -2.75, math.Inf(-1)}
		require.Equal(t, want, mlxtest.Values(t, k.Launch(l, x, mlxc.Scalar(uint32(8)))[0]), d)
		report, err := k.Sanitize(t.Context(), l, sanitizer.Config{Schedules: 1}, x, mlxc.Scalar(uint32(8)))
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		require.Equal(t, want, mlxtest.Values(t, report.Outputs[0]), d)
	}
}

// An error names the C++ keyword or type that Metal lacks.
func TestCppWithoutMetalEquivalent(t *testing.T) {
	for body, want := range map[string]string{
		"double d = x[0];\n  y[0] = d;":                "word.metal:4:3: Metal has no double: use float",
		"thread float* p = new float(1); y[0] = p[0];": "word.metal:4:21: Metal has no new",
		"again: if (y[0] < x[0]) goto again;":          "word.metal:4:27: Metal has no goto",
	} {
		lib, err := Load(fstest.MapFS{"word.metal": {Data: []byte("#include <metal_stdlib>\nusing namespace metal;\n" +
			"kernel void word(device const float* x [[buffer(0)]], device float* y [[buffer(1)]]) {\n  " + body + "\n}\n")}}, "word.metal")
		require.NoError(t, err)
		k, err := lib.Kernel("")
		require.NoError(t, err)
		out := k.Launch(Launch{Grid: [3]int{1}, Outputs: []mlxc.Output{{Shape: []int{1}, DType: mlxc.Float32}}}, mlxc.Ones(mlxc.Float32, 8))
		require.ErrorContains(t, out[0].Err(), want)
	}
}
