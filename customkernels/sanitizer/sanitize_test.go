package sanitizer

import (
	"encoding/binary"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// load returns the only kernel of a shader text.
func load(t *testing.T, text string) *Kernel {
	t.Helper()
	lib, err := Load(fstest.MapFS{"f.metal": {Data: []byte(text)}}, "f.metal")
	require.NoError(t, err)
	k, err := lib.Kernel("")
	require.NoError(t, err)
	return k
}

const reverse = `
template <typename T>
[[kernel]] void reverse(device const T* x [[buffer(0)]], device T* y [[buffer(1)]],
	uint i [[thread_position_in_grid]]) {
  threadgroup T tile[64];
  tile[i] = x[i];
  y[i] = tile[63 - i];
}
`

func reverseLaunch() (Launch, Array) {
	x := Array{DType: Int32, Shape: []int{64}}
	for i := range 64 {
		x.Data = Int32.Append(x.Data, float64(i))
	}
	return Launch{
		Grid: [3]int{64}, Threadgroup: [3]int{64}, Template: []TemplateArg{{"T", Int32}},
		Outputs: []Output{{Shape: []int{64}, DType: Int32}},
	}, x
}

func TestSanitizeWithoutMLX(t *testing.T) {
	if _, err := Compiler(); err != nil {
		skip.Missing(t, skip.CXX, err)
	}
	k := load(t, reverse)
	l, x := reverseLaunch()
	r, err := k.Sanitize(t.Context(), l, Config{}, x)
	require.NoError(t, err)
	require.Len(t, r.Errors(), 1)
	require.Equal(t, FindingRace, r.Findings[0].Kind)
	require.Equal(t, "tile", r.Findings[0].Buffer)

	// Elements that the kernel does not reach keep InitValue.
	l.Grid, l.Threadgroup = [3]int{32}, [3]int{32}
	seven := float32(7)
	l.InitValue = &seven
	r, err = load(t, `
[[kernel]] void f(device const int* x [[buffer(0)]], device int* y [[buffer(1)]],
	uint i [[thread_position_in_grid]]) { y[i] += x[i]; }
`).Sanitize(t.Context(), Launch{Grid: l.Grid, Threadgroup: l.Threadgroup, InitValue: &seven, Outputs: l.Outputs}, Config{}, x)
	require.NoError(t, err)
	require.Empty(t, r.Findings)
	require.EqualValues(t, 31+7, binary.NativeEndian.Uint32(r.Outputs[0].Data[4*31:]))
	require.EqualValues(t, 7, binary.NativeEndian.Uint32(r.Outputs[0].Data[4*32:]))
}

// A launch that does not fit the kernel is an error.
func TestInvalidLaunches(t *testing.T) {
	k := load(t, reverse)
	for part, change := range map[string]func(l *Launch, inputs *[]Array){
		"2 inputs, want 1":                      func(_ *Launch, in *[]Array) { *in = append(*in, Array{}) },
		"0 outputs, want 1":                     func(l *Launch, _ *[]Array) { l.Outputs = nil },
		"the input x is declared T and must be": func(_ *Launch, in *[]Array) { (*in)[0].DType = Float32 },
		"the template argument T is missing":    func(l *Launch, _ *[]Array) { l.Template = nil },
		"does not fit the parameter typename T": func(l *Launch, _ *[]Array) {
			l.Template = []TemplateArg{{
				"T",
				DType(200),
			}}
		},
		"x has 255 bytes of data: int32[64] " +
			"needs": func(_ *Launch, in *[]Array) { (*in)[0].Data = (*in)[0].Data[:255] },
		"y has a negative axis: [-64]":   func(l *Launch, _ *[]Array) { l.Outputs[0].Shape = []int{-64} },
		"y is larger than 1 TiB":         func(l *Launch, _ *[]Array) { l.Outputs[0].Shape = []int{1 << 30, 1 << 30, 1 << 30} },
		"y has an axis above 2147483647": func(l *Launch, _ *[]Array) { l.Outputs[0].Shape = []int{1 << 40} },
		"has a negative axis":            func(l *Launch, _ *[]Array) { l.Grid[0] = -1 },
		"has no writable buffer z":       func(l *Launch, _ *[]Array) { l.InOut = map[string]Array{"z": {}} },
	} {
		l, x := reverseLaunch()
		inputs := []Array{x}
		change(&l, &inputs)
		_, err := k.Sanitize(t.Context(), l, Config{}, inputs...)
		require.ErrorContains(t, err, part)
	}
	bytes := load(t, `kernel void f(device const char* b [[buffer(0)]], device int* y [[buffer(1)]]) { y[0] = b[0]; }`)
	_, err := bytes.MetalSource(Launch{Grid: [3]int{1}, Outputs: []Output{{DType: Int32, Shape: []int{1}}}},
		Array{DType: 200, Shape: []int{8}})
	require.ErrorContains(t, err, "the buffer b has the dtype DType(200)")
}

func TestDTypes(t *testing.T) {
	require.Len(t, DTypes(), 14)
	for element, want := range map[string]DType{
		"half": Float16, "float": Float32, "bfloat": BFloat16, "uint": Uint32,
		"uint8_t": Uint8, "float4": Invalid, "": Invalid,
	} {
		require.Equal(t, want, dtypeOf(element), element)
	}
	for _, kind := range findingKinds {
		require.Contains(t, FindingKinds(), kind)
	}
}
