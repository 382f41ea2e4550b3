package customkernels

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/addrspace"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// checkCUDA compiles a text with clang's CUDA front end, which needs neither CUDA nor a GPU.
func checkCUDA(t *testing.T, text string) {
	t.Helper()
	compiler, err := addrspace.Clang()
	require.NoError(t, err)
	stub, err := os.ReadFile("internal/metalstd/testdata/cuda_stub.h")
	require.NoError(t, err)
	c := exec.Command(compiler, "-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib",
		"--cuda-gpu-arch=sm_80", "-std=c++17", "-fsyntax-only", "-w", "-")
	c.Stdin = strings.NewReader(string(stub) + text)
	output, err := c.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

func TestCUDATextOfCorrectShaders(t *testing.T) {
	seen := map[*Kernel]bool{}
	for _, l := range correctLaunches(t) {
		if seen[l.kernel] {
			continue
		}
		seen[l.kernel] = true
		text, err := l.kernel.CUDASource(l.launch, l.inputs...)
		require.NoError(t, err, l.name)
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			checkCUDA(t, text)
		})
	}
}

// As in Metal, a braced list can be assigned to a swizzle.
func TestCUDATextOfSwizzles(t *testing.T) {
	lib, err := Load(fstest.MapFS{"turn.metal": {Data: []byte(`#include <metal_stdlib>
using namespace metal;
kernel void turn(device const float2* x [[buffer(0)]], device float4* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  float4 v = 0;
  v.xy = {-x[i].y, x[i].x};
  v.wz += v.xy;
  y[i] = v;
}`)}}, "turn.metal")
	require.NoError(t, err)
	k, err := lib.Kernel("")
	require.NoError(t, err)
	text, err := k.CUDASource(Launch{
		Grid: [3]int{3, 1, 1}, Threadgroup: [3]int{3, 1, 1},
		Outputs: []mlxc.Output{{Shape: []int{3, 4}, DType: mlxc.Float32}},
	}, mlxc.Zeros(mlxc.Float32, 3, 2))
	require.NoError(t, err)
	checkCUDA(t, text)
}

// The CUDA tiles of attention compile for each dtype, and for head dimensions that are no multiple of an mma.
func TestCUDATextOfTiles(t *testing.T) {
	lib, err := Load(Shaders(), "attention_backward.metal")
	require.NoError(t, err)
	k, err := lib.Kernel("attention_dkv")
	require.NoError(t, err)
	for _, dtype := range mlxtest.FloatDTypes {
		for _, width := range []int{16, 24} {
			rows := []int{1, 1, 16, width}
			like := mlxc.Output{Shape: rows, DType: dtype}
			l := Launch{
				Grid: [3]int{64, 1, 1}, Threadgroup: [3]int{64, 1, 1},
				Template: template(
					"T", dtype, "MASK_T", mlxc.Bool, "CAPPED", false, "MASKED", false, "PAIRED", width%16 == 0, "LANES", 32,
					"SIMDGROUPS", 2, "BLOCK_M", 16, "BLOCK_N", 16, "HEAD_DIM", width, "VALUE_DIM", width),
				Outputs: []mlxc.Output{like, like},
			}
			x, starts := mlxc.Zeros(dtype, rows...), mlxc.Zeros(mlxc.Int32, 8)
			text, err := k.CUDASource(l, x, x, x, mlxc.Zeros(mlxc.Bool, 8), x, mlxc.Zeros(mlxc.Float32, 1, 1, 16, 4), starts, starts,
				mlxc.Zeros(mlxc.Int32, 12), mlxc.Zeros(mlxc.Float32, 8))
			require.NoError(t, err)
			checkCUDA(t, text)
		}
	}
}

// A launch beyond CUDA's limits is an error. sameSimdgroups is false for a launch whose simdgroups would differ from
// Metal's.
func TestLaunchesBeyondCUDA(t *testing.T) {
	lib, err := Load(fstest.MapFS{"meet.metal": {Data: []byte(`#include <metal_stdlib>
using namespace metal;
kernel void meet(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint3 p [[thread_position_in_grid]]) {
  y[p.x + p.y] = simd_sum(x[p.x]);
}`)}}, "meet.metal")
	require.NoError(t, err)
	k, err := lib.Kernel("")
	require.NoError(t, err)
	x := mlxc.Zeros(mlxc.Float32, 64)
	out := []mlxc.Output{{Shape: []int{64}, DType: mlxc.Float32}}
	_, err = k.launchCUDA(Launch{Grid: [3]int{1, 70000, 1}, Threadgroup: [3]int{1, 1, 1}, Outputs: out}, []*mlxc.Array{x})
	require.ErrorContains(t, err, "70000 threadgroups along axis 1")
	for _, l := range []Launch{
		{Grid: [3]int{64, 2, 1}, Threadgroup: [3]int{32, 2, 1}},
		{Grid: [3]int{64, 3, 1}, Threadgroup: [3]int{32, 2, 1}}, // the last threadgroup may be smaller along the last axis
		{Grid: [3]int{70, 1, 1}, Threadgroup: [3]int{32, 1, 1}},
	} {
		require.True(t, l.sameSimdgroups(), l)
	}
	short := Launch{Grid: [3]int{70, 2, 1}, Threadgroup: [3]int{32, 2, 1}}
	require.False(t, short.sameSimdgroups())
	require.False(t, short.fullGroups())
}

// An error of NVRTC is reported at its line of the shader.
func TestErrorsOfNVRTC(t *testing.T) {
	k := inline(t, `#include <metal_stdlib>
using namespace metal;
kernel void copy(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  y[i] = x[i] + 1;
}`)
	x := mlxc.Zeros(mlxc.Float32, 8)
	l := k.withDefaults(perElement(x))
	text, err := k.generate(l, []*mlxc.Array{x})
	require.NoError(t, err)
	before, _, found := strings.Cut(text, "x[i] + 1")
	require.True(t, found)
	program, err := k.CUDASource(l, x)
	require.NoError(t, err)
	_, after, found := strings.Cut(program, "#line 1 \""+shader.MetalText+"\"\n")
	require.True(t, found)
	line := strings.Count(before, "\n") + 1
	require.Contains(t, strings.Split(after, "\n")[line-1], "x[i] + 1")
	err = k.loaded.MapCompilerError(text, &toolchain.CompileError{
		Output: fmt.Sprintf("%s(%d): error: a message\n\n1 error detected", shader.MetalText, line),
	})
	require.EqualError(t, err, "inline.metal:4: a message")
}

// Each way to multiply floats has a program of its own.
func TestFloatProductsOfCUDA(t *testing.T) {
	lib, err := Load(fstest.MapFS{"copy.metal": {Data: []byte(`#include <metal_stdlib>
using namespace metal;
kernel void copy(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  y[i] = x[i];
}`)}}, "copy.metal")
	require.NoError(t, err)
	k, err := lib.Kernel("")
	require.NoError(t, err)
	x := mlxc.Zeros(mlxc.Float32, 64)
	plain := Launch{
		Grid: [3]int{64, 1, 1}, Threadgroup: [3]int{64, 1, 1}, Outputs: []mlxc.Output{{Shape: []int{64}, DType: mlxc.Float32}},
	}
	bit := map[bool]int{true: 1}
	keys := map[string]bool{}
	for products, want := range map[FloatProducts][3]int{
		DefaultProducts: {bit[mlxc.TF32Enabled()], 0, 0}, SplitProducts: {0, 0, 0}, FullSplitProducts: {0, 0, 1},
		FMAProducts: {0, 1, 0},
	} {
		l := plain
		l.Products = products
		keys[string(k.cudaKey(l, []*mlxc.Array{x}, 0))] = true
		text, err := k.CUDASource(l, x)
		require.NoError(t, err)
		require.Contains(t, text, fmt.Sprintf("#define MLXG_TF32 %d\n#define MLXG_FMA %d\n#define MLXG_FULL_SPLIT %d\n",
			want[0], want[1], want[2]))
	}
	require.Len(t, keys, 4)
}

// A program gets the values of Constant and pointers to other inputs.
func TestConstantsArePassedByValue(t *testing.T) {
	k := inline(t, `#include <metal_stdlib>
using namespace metal;
kernel void scale(device const float* x [[buffer(0)]], constant uint& n [[buffer(1)]], constant float& by [[buffer(2)]],
    device float* y [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  y[i] = i < n ? x[i] * by : 0;
}`)
	x, n, by := mlxc.Zeros(mlxc.Float32, 64), Constant(uint32(8)), Constant(float32(-1))
	l := k.withDefaults(perElement(x))
	program := func(inputs ...*mlxc.Array) string {
		text, err := k.CUDASource(l, inputs...)
		require.NoError(t, err)
		_, text, found := strings.Cut(text, " scale(")
		require.True(t, found)
		return text
	}
	text := program(x, n, by)
	require.Contains(t, text, "const void* mlxg_buffer_x, void* mlxg_buffer_y, "+
		"const int mlxg_buffer_n_value, const int mlxg_buffer_by_value) {")
	require.Contains(t, text, "const void* const mlxg_buffer_by = &mlxg_buffer_by_value;")
	require.Contains(t, program(x, n, mlxc.Scalar[float32](1)),
		"const void* mlxg_buffer_x, const void* mlxg_buffer_by, void* mlxg_buffer_y, const int mlxg_buffer_n_value) {")
	require.Equal(t, inputValues{inputs: 0b110, bits: []uint32{8, math.Float32bits(-1)}}, valuesOf([]*mlxc.Array{x, n, by}))
	require.NotEqual(t, k.cudaKey(l, []*mlxc.Array{x, n, by}, 0b110), k.cudaKey(l, []*mlxc.Array{x, n, by}, 0b10))
}

// The program of a launch that starts early waits, and sets its addresses, before it accesses memory.
func TestProgramsThatStartEarlyWait(t *testing.T) {
	x := mlxc.Ones(mlxc.Float32, 64)
	k := kernel(t, "scale.metal", "scale")
	l := perElement(x, mlxc.TemplateArg{Name: "T", Value: mlxc.Float32})
	function := func() string {
		text, err := k.CUDASource(l, x, mlxc.Scalar[float32](3))
		require.NoError(t, err)
		return text[strings.LastIndex(text, `extern "C" __global__`):]
	}
	require.NotContains(t, function(), "griddepcontrol")
	l.StartsEarly = true
	require.Contains(t, function(), `{
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("" : "+l"(mlxg_buffer_x) : : "memory");
  asm volatile("" : "+l"(mlxg_buffer_factor) : : "memory");
  asm volatile("" : "+l"(mlxg_buffer_y) : : "memory");
#endif
`)
}
