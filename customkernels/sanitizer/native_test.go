package sanitizer

import (
	"encoding/binary"
	"math"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

const native = `
#include <metal_stdlib>
using namespace metal;
#define KERNEL(NAME, TYPE, OP) \
  kernel void NAME(device const TYPE* x, device TYPE* y, uint i [[thread_position_in_grid]]) { y[i] = OP(x[i]); }
#ifdef TWICE
KERNEL(twice, float, 2 *)
#endif
struct values { float a, b; constexpr values() = default; };
float sum(values v) { return v.a + v.b; }
float negated(float x) { return -x; }
template <typename T, T (*f)(T)>
kernel void apply(device const T* x, device T* y, uint i [[thread_position_in_grid]]) { y[i] = f(x[i]); }
template [[host_name("apply_negated")]] kernel decltype(apply<float, negated>) apply<float, negated>;
constant int& broken() { return undeclared; }
kernel void textured(depth2d<float> t [[texture(0)]], device float* y) { y[0] = 0; }
kernel void shapes(device const float* x, constant int* x_shape, threadgroup float& g, threadgroup float* p,
                   device float* y, uint i [[thread_position_in_threadgroup]]) {
  threadgroup float zeros[2] = {0};
  values v = {zeros[0], 3};
  if (i == 0) { g = x[0]; p[1] = x_shape[0]; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = g + p[1] + sum(v);
}
struct tagged { float value; };
template <> struct _numeric_limits_impl<tagged> { static constexpr tagged max() { return {7}; } };
kernel void largest(device float* y, uint i [[thread_position_in_grid]]) {
  y[i] = numeric_limits<tagged>::max().value + (numeric_limits<int>::max() == INT_MAX);
}
`

func loadNative(t *testing.T, text string, o NativeOptions) *Library {
	t.Helper()
	if _, err := Compiler(); err != nil {
		skip.Missing(t, skip.CXX, err)
	}
	lib, err := LoadNative(t.Context(), fstest.MapFS{"f.metal": {Data: []byte(text)}}, "f.metal", o)
	require.NoError(t, err)
	return lib
}

func floats(values ...float32) Array {
	a := Array{DType: Float32, Shape: []int{len(values)}}
	for _, v := range values {
		a.Data = Float32.Append(a.Data, float64(v))
	}
	return a
}

func outputs(a Array) []float32 {
	var list []float32
	for data := a.Data; len(data) > 0; data = data[4:] {
		list = append(list, math.Float32frombits(binary.NativeEndian.Uint32(data)))
	}
	return list
}

// sanitizeNative runs a kernel on two threads, and returns its output of two floats.
func sanitizeNative(t *testing.T, lib *Library, name string, template []TemplateArg, options []Option, inputs ...Array) (*Report, []float32) {
	t.Helper()
	k, err := lib.Kernel(name, options...)
	require.NoError(t, err)
	r, err := k.Sanitize(t.Context(), Launch{
		Grid: [3]int{2}, Threadgroup: [3]int{2}, Template: template,
		Outputs: []Output{{Shape: []int{2}, DType: Float32}},
	}, Config{}, inputs...)
	require.NoError(t, err)
	require.Empty(t, r.Findings)
	return r, outputs(r.Outputs[0])
}

func TestNativeKernels(t *testing.T) {
	lib := loadNative(t, native, NativeOptions{Define: []string{"TWICE"}})
	require.Equal(t, []string{"twice", "apply_negated", "textured", "shapes", "largest"}, lib.Names())
	require.ErrorContains(t, lib.Problem("textured"), "f.metal:16:22: arguments of type depth2d are not supported")
	require.NoError(t, lib.Problem("twice"))
	require.Equal(t, []string{
		"// launch: twice grid=1 threadgroup=1 x=float32[4096]:zeros y=inout:float32[4096]:zeros",
		"// launch: apply_negated grid=1 threadgroup=1 x=float32[4096]:zeros y=inout:float32[4096]:zeros",
		"// launch: shapes grid=1 threadgroup=1 x=float32[4096]:zeros x_shape=int32[4096]:zeros y=inout:float32[4096]:zeros p=threadgroup:1024",
		"// launch: largest grid=1 threadgroup=1 y=inout:float32[4096]:zeros",
	}, lib.Drafts())
	require.NotContains(t, loadNative(t, native, NativeOptions{}).Names(), "twice")

	_, y := sanitizeNative(t, lib, "twice", nil, nil, floats(1, 2))
	require.Equal(t, []float32{2, 4}, y)
	_, y = sanitizeNative(t, lib, "apply_negated", nil, nil, floats(1, 2))
	require.Equal(t, []float32{-1, -2}, y)
	_, y = sanitizeNative(t, lib, "apply", []TemplateArg{{"T", Float32}, {"f", Expression("negated")}}, nil, floats(1, 2))
	require.Equal(t, []float32{-1, -2}, y)
	shape := Array{DType: Int32, Shape: []int{1}, Data: Int32.Append(nil, 40)}
	_, y = sanitizeNative(t, lib, "shapes", nil, []Option{shader.ThreadgroupSize("p", 2), shader.GivenBuffer("x_shape")}, floats(7, 2), shape)
	require.Equal(t, []float32{50, 50}, y)
	_, y = sanitizeNative(t, lib, "largest", nil, nil)
	require.Equal(t, []float32{8, 8}, y)
}

func TestInvalidNativeLaunches(t *testing.T) {
	lib := loadNative(t, native, NativeOptions{})
	_, err := lib.Kernel("shapes")
	require.ErrorContains(t, err, "the threadgroup argument p has no size")
	_, err = lib.Kernel("textured")
	require.ErrorContains(t, err, "arguments of type depth2d are not supported")
	_, err = lib.Kernel("twice")
	require.ErrorContains(t, err, `no kernel "twice"`)
	for name, cases := range map[string]map[string][]TemplateArg{
		"apply": {
			"the template argument T is missing":          nil,
			"the template argument f is missing":          {{"T", Float32}},
			"the kernel has no template parameter g":      {{"g", 1}},
			"the input x is declared T and must be int32": {{"T", Int32}, {"f", Expression("negated")}},
		},
		"apply_negated": {"has its own template arguments [float negated]: leave out T": {{"T", Float32}}},
	} {
		k, err := lib.Kernel(name)
		require.NoError(t, err)
		for want, template := range cases {
			_, err := k.Sanitize(t.Context(), Launch{
				Grid: [3]int{2}, Threadgroup: [3]int{2}, Template: template,
				Outputs: []Output{{Shape: []int{2}, DType: Float32}},
			}, Config{}, floats(1, 2))
			require.ErrorContains(t, err, want)
		}
	}
	k, err := lib.Kernel("apply_negated")
	require.NoError(t, err)
	_, err = k.MetalSource(Launch{Grid: [3]int{2}, Threadgroup: [3]int{2}, Outputs: []Output{{Shape: []int{2}, DType: Float32}}}, floats(1, 2))
	require.ErrorContains(t, err, "was loaded with LoadNative")
}

// clang++ compiles kernels that g++ rejects, and the report says so.
func TestNativeAlternativeCompiler(t *testing.T) {
	if toolchain.Alternative() == nil {
		skip.Missing(t, skip.Clang, "CXX is set, or clang++ is the only compiler or missing")
	}
	lib := loadNative(t, `
struct block { union { struct { half d; half m; }; half2 dm; }; };
kernel void f(device const block* x, device float* y, uint i [[thread_position_in_grid]]) { y[i] = x[i].d + x[i].m; }
kernel void g(device const block* x, device float* y) { y[0] = x[0].none; }
`, NativeOptions{})
	x := Array{DType: Float16, Shape: []int{4}}
	for _, v := range []float64{1, 2, 3, 4} {
		x.Data = Float16.Append(x.Data, v)
	}
	for range 2 { // the second time from the cache
		r, y := sanitizeNative(t, lib, "f", nil, nil, x)
		require.Equal(t, []float32{3, 7}, y)
		require.Contains(t, r.CompilerNote, "compiled by clang++")
		require.Contains(t, r.CompilerNote, "f.metal:2:")
	}
	k, err := lib.Kernel("g")
	require.NoError(t, err)
	_, err = k.Sanitize(t.Context(), Launch{
		Grid: [3]int{1}, Threadgroup: [3]int{1}, Outputs: []Output{{Shape: []int{1}, DType: Float32}},
	}, Config{}, x)
	require.ErrorContains(t, err, "f.metal:2:", "g++'s errors")
}
