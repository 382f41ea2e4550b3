package customkernels

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Launches that MLX does not support run only in the checker.
func TestInOutBuffersRunInTheCheckerAlone(t *testing.T) {
	const text = `
// launch: grid=10 threadgroup=4 factor=float32:2 y=inout:float32[10]:iota
kernel void scale(constant float& factor [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  y[i] *= factor;
}
`
	k, s := inline(t, text), oneLaunch(t, text[len("\n// launch: "):])
	require.Equal(t, "y", s.InOut[0].Name)
	l, inputs, err := k.Arguments(s, 1)
	require.NoError(t, err)

	r, err := k.Sanitize(t.Context(), l, sanitizer.Config{}, inputs...)
	require.NoError(t, err)
	require.Empty(t, r.Findings)
	require.Equal(t, 3, r.Schedules)
	require.True(t, r.SameBits, "every schedule begins with what the buffer held")
	require.Equal(t, "the buffer y is read and written, and MLX's outputs are new arrays: read an input and write an output", r.UnsupportedByMLX)
	require.Equal(t, []float32{0, 2, 4, 6, 8, 10, 12, 14, 16, 18}, mlxtest.Floats(t, r.Outputs[0]))

	const refused = "MLX's custom kernels do not support this launch, which Sanitize can still check: the buffer y is read and written"
	err = k.Launch(l, inputs...)[0].Err()
	require.ErrorContains(t, err, refused)
	require.ErrorContains(t, err, "scale")
	_, err = k.MetalSource(l, inputs...)
	require.ErrorContains(t, err, refused)

	// Without content the buffer is an undefined output, which the kernel reads before it writes.
	l.InOut = nil
	r, err = k.Sanitize(t.Context(), l, sanitizer.Config{}, inputs...)
	require.NoError(t, err)
	require.Empty(t, r.UnsupportedByMLX)
	require.Equal(t, sanitizer.FindingUninitializedRead, r.Findings[0].Kind)

	for part, inOut := range map[string]map[string]*mlxc.Array{
		"the kernel has no writable buffer factor for in-out content: its outputs are [y]":                       {"factor": mlxc.Scalar[float32](1)},
		"the in-out buffer y holds float32[9] and its output is float32[10]: give both the same shape and dtype": {"y": mlxc.Zeros(mlxc.Float32, 9)},

		"the in-out buffer y holds int32[10]": {"y": mlxc.Zeros(mlxc.Int32, 10)},
		"the in-out buffer y: ":               {"y": mlxc.Zeros(mlxc.Float32, 2).Reshape(3)},
	} {
		l.InOut = inOut
		require.ErrorContains(t, sanitizeError(t, k, l, inputs...), part)
		require.ErrorContains(t, k.Launch(l, inputs...)[0].Err(), part)
	}
}

// The checker finds races on in-out buffers.
func TestRaceOnAnInOutBuffer(t *testing.T) {
	k := inline(t, `
kernel void shift(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  y[i] = y[(i + 1) % 64];
}
`)
	y := mlxc.Arange(mlxc.Float32, 0, 64, 1)
	r, err := k.Sanitize(t.Context(), Launch{
		Grid: [3]int{64}, Threadgroup: [3]int{64}, InOut: map[string]*mlxc.Array{"y": y},
		Outputs: []mlxc.Output{{Shape: []int{64}, DType: mlxc.Float32}},
	}, sanitizer.Config{})
	require.NoError(t, err)
	require.Equal(t, sanitizer.FindingRace, r.Findings[0].Kind)
	require.NotEmpty(t, r.UnsupportedByMLX)
}

func TestCoherentBuffersRunInTheCheckerAlone(t *testing.T) {
	k := inline(t, `
kernel void f(coherent(device) device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = i; }
`)
	l := Launch{Grid: [3]int{4}, Threadgroup: [3]int{4}, Outputs: []mlxc.Output{{Shape: []int{4}, DType: mlxc.Float32}}}
	r, err := k.Sanitize(t.Context(), l, sanitizer.Config{})
	require.NoError(t, err)
	require.Empty(t, r.Findings)
	require.Contains(t, r.UnsupportedByMLX, "the buffer y is coherent")
	require.ErrorContains(t, k.Launch(l)[0].Err(), "the buffer y is coherent, and MLX's signature cannot declare that")
}

// A small input that the kernel declares device is padded, so that it stays in device memory. Otherwise MLX would pass
// it in constant memory, and Apple's compiler would refuse the call of the helper. The checker uses the unpadded size.
func TestSmallDeviceInputs(t *testing.T) {
	k := inline(t, `
struct Pair { float a, b; };
inline float second(device const Pair* p) { return p[0].b; }
kernel void f(device const Pair* pairs [[buffer(0)]], device const float* x [[buffer(1)]], constant uint& n [[buffer(2)]],
              device float* y [[buffer(3)]]) {
  y[0] = second(pairs) + second(pairs + n) + x[0];
}
`)
	pairs, x := mlxc.FromSlice([]float32{1, 2, 3, 4}), mlxc.FromSlice([]float32{10}, 1, 1)
	l := Launch{Grid: [3]int{1}, Threadgroup: [3]int{1}, Outputs: []mlxc.Output{{Shape: []int{1}, DType: mlxc.Float32}}}
	require.Equal(t, []float32{16}, mlxtest.Floats(t, k.Launch(l, pairs, x, mlxc.Scalar[uint32](1))[0]))
	text, err := k.MetalSource(l, pairs, x, mlxc.Scalar[uint32](1))
	require.NoError(t, err)
	require.Contains(t, text, "const device float* mlxg_pairs")
	require.Contains(t, text, "const device float* x")
	padded := k.padded([]*mlxc.Array{pairs, x, mlxc.Scalar[uint32](1)})
	require.Equal(t, []float32{1, 2, 3, 4, 0, 0, 0, 0}, mlxtest.Floats(t, padded[0]))
	require.Equal(t, []float32{10, 0, 0, 0, 0, 0, 0, 0}, mlxtest.Floats(t, padded[1]))
	require.Equal(t, 0, padded[2].NDim())

	r, err := k.Sanitize(t.Context(), l, sanitizer.Config{}, pairs, x, mlxc.Scalar[uint32](1))
	require.NoError(t, err)
	require.Empty(t, r.Findings)
	require.Empty(t, r.UnsupportedByMLX)
	r, err = k.Sanitize(t.Context(), l, sanitizer.Config{}, pairs, x, mlxc.Scalar[uint32](2))
	require.NoError(t, err)
	require.Equal(t, sanitizer.FindingOutOfBounds, r.Findings[0].Kind)
	require.Equal(t, "pairs", r.Findings[0].Buffer)
	require.ErrorContains(t, sanitizeError(t, k, l, mlxc.Scalar[float32](1), x, mlxc.Scalar[uint32](2)), "pairs is read as Pair and must have an axis")
}

var _ = testdevice.AlsoOnGPU(TestSmallDeviceInputs)

// A small input is not padded if the kernel reads its shape, which padding would change.
func TestSmallDeviceInputWithItsShape(t *testing.T) {
	k := inline(t, `
kernel void f(device const float2* x [[buffer(0)]], constant int* x_shape [[buffer(1)]], device float* y [[buffer(2)]]) {
  y[0] = x[1].y + x_shape[0];
}
`)
	l := Launch{Grid: [3]int{1}, Threadgroup: [3]int{1}, Outputs: []mlxc.Output{{Shape: []int{1}, DType: mlxc.Float32}}}
	x := mlxc.FromSlice([]float32{1, 2, 3, 4})
	r, err := k.Sanitize(t.Context(), l, sanitizer.Config{}, x)
	require.NoError(t, err)
	require.Empty(t, r.Findings)
	require.Contains(t, r.UnsupportedByMLX, "the input x is read as float2 from 4 elements")
	require.Equal(t, []float32{8}, mlxtest.Floats(t, r.Outputs[0]))
	require.ErrorContains(t, k.Launch(l, x)[0].Err(), "give it at least 8")
	x = mlxc.Arange(mlxc.Float32, 0, 8, 1)
	require.Equal(t, []float32{11}, mlxtest.Floats(t, k.Launch(l, x)[0]))
}

var _ = testdevice.AlsoOnGPU(TestSmallDeviceInputWithItsShape)

// A structure in constant memory can be passed to a helper that declares constant.
func TestConstantStructurePassedToAHelper(t *testing.T) {
	k := inline(t, `
struct Params { uint n; float scale; };
inline float scaled(constant Params& p, float v) { return v * p.scale + p.n; }
kernel void f(constant Params& p [[buffer(0)]], constant float4* table [[buffer(1)]], device float* y [[buffer(2)]],
              uint i [[thread_position_in_grid]]) {
  y[i] = scaled(p, table[0][i]);
}
`)
	l := Launch{Grid: [3]int{4}, Threadgroup: [3]int{4}, Outputs: []mlxc.Output{{Shape: []int{4}, DType: mlxc.Float32}}}
	params, table := mlxc.FromSlice([]uint32{3, 0x40000000}), mlxc.FromSlice([]float32{1, 2, 3, 4})
	require.Equal(t, []float32{5, 7, 9, 11}, mlxtest.Floats(t, k.Launch(l, params, table)[0]))
	r, err := k.Sanitize(t.Context(), l, sanitizer.Config{}, params, table)
	require.NoError(t, err)
	require.Empty(t, r.Findings)
	require.Equal(t, []float32{5, 7, 9, 11}, mlxtest.Floats(t, r.Outputs[0]))

	// MLX passes eight or more elements in device memory, so Apple's compiler refuses the call.
	params = mlxc.FromSlice([]uint32{3, 0x40000000, 0, 0, 0, 0, 0, 0})
	require.Equal(t, []float32{5, 7, 9, 11}, mlxtest.Floats(t, k.Launch(l, params, table)[0]))
	r, err = k.Sanitize(t.Context(), l, sanitizer.Config{}, params, table)
	require.NoError(t, err)
	if r.AddressSpacesSkipped != "" {
		skip.Missing(t, skip.Clang, r.AddressSpacesSkipped)
	}
	require.Len(t, r.Findings, 1)
	require.Equal(t, sanitizer.FindingAddressSpace, r.Findings[0].Kind)
	require.Equal(t, sanitizer.Site{File: "inline.metal", Line: 6, Column: 10}, r.Findings[0].Site)
	require.Contains(t, r.Findings[0].Message, "Apple's compiler refuses this: ")
}

var _ = testdevice.AlsoOnGPU(TestConstantStructurePassedToAHelper)

func TestMaxTotalThreadsPerThreadgroup(t *testing.T) {
	k := inline(t, `
[[kernel, max_total_threads_per_threadgroup(64)]] void f(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = i; }
`)
	l := Launch{Grid: [3]int{128}, Threadgroup: [3]int{64}, Outputs: []mlxc.Output{{Shape: []int{128}, DType: mlxc.Float32}}}
	require.NoError(t, k.Launch(l)[0].Err())
	l.Threadgroup = [3]int{128}
	require.ErrorContains(t, k.Launch(l)[0].Err(), "a threadgroup of [128 1 1] threads: the kernel's "+
		"max_total_threads_per_threadgroup allows at most 64")
	r, err := k.Sanitize(t.Context(), l, sanitizer.Config{})
	require.NoError(t, err)
	require.Equal(t, sanitizer.FindingLimit, r.Findings[0].Kind)
}
