package customkernels

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// withClang replaces clang on the PATH by a program with the given text, or removes it if the text is empty. The tools
// of the host executor stay.
func withClang(t *testing.T, text string) {
	t.Helper()
	compiler, err := HostCompiler()
	if err != nil {
		skip.Missing(t, skip.CXX, err)
	}
	dir := t.TempDir()
	for _, tool := range []string{"g++", "c++", "as", "ld"} {
		if path, err := exec.LookPath(tool); err == nil {
			require.NoError(t, os.Symlink(path, filepath.Join(dir, tool)))
		}
	}
	if os.Getenv("CXX") != "" {
		path, err := exec.LookPath(os.Getenv("CXX"))
		require.NoError(t, err, compiler)
		t.Setenv("CXX", path)
	}
	if text != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "clang++"), []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	}
	t.Setenv("PATH", dir)
}

const betweenSpaces = `
inline float at(threadgroup float* p, uint i) {
  device float* q = p;
  return q[i];
}
kernel void f(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  threadgroup float t[32];
  t[i] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = at(t, 31 - i);
}
`

func launchBetweenSpaces() Launch {
	return Launch{Grid: [3]int{32}, Threadgroup: [3]int{32}, Outputs: []mlxc.Output{{Shape: []int{32}, DType: mlxc.Float32}}}
}

// The checker reports mismatched address spaces, which Apple's compiler would refuse, with their line, once for each
// launch.
func TestSanitizeFindsAddressSpaces(t *testing.T) {
	k := inline(t, betweenSpaces)
	for range 2 { // the second result comes from the cache
		r, err := k.Sanitize(t.Context(), launchBetweenSpaces(), sanitizer.Config{})
		require.NoError(t, err)
		if r.AddressSpacesSkipped != "" {
			skip.Missing(t, skip.Clang, r.AddressSpacesSkipped)
		}
		require.Len(t, r.Findings, 1)
		f := r.Findings[0]
		require.Equal(t, sanitizer.FindingAddressSpace, f.Kind)
		require.Equal(t, sanitizer.SeverityError, f.Severity)
		require.Equal(t, "inline.metal:3", f.Site.String())
		require.Contains(t, f.Message, "Apple's compiler refuses this: cannot initialize a variable of type 'device float *thread' with an lvalue of type 'threadgroup float *")
		require.Empty(t, f.Schedule)
		require.Equal(t, 3, r.Schedules, "it runs all the same")
	}
}

// If clang is missing or cannot read the text, the report gives the reason, and the launch still runs.
func TestSanitizeWithoutClang(t *testing.T) {
	for program, unchecked := range map[string]string{
		"": "inline.metal: the address-space check needs clang 14 or later on PATH",
		"echo 'mlxg_text:3:1: error: unheard of' >&2; echo 'mlxg_text:4:1: error: too' >&2; exit 1": "clang could not read inline.metal:3: unheard of (and 1 more)",
		"echo 'error: unknown target' >&2; exit 1":                                                  "unknown target",
	} {
		t.Run(program, func(t *testing.T) {
			withClang(t, program)
			r, err := inline(t, betweenSpaces).Sanitize(t.Context(), launchBetweenSpaces(), sanitizer.Config{})
			require.NoError(t, err)
			require.Empty(t, r.Findings)
			require.Contains(t, r.AddressSpacesSkipped, unchecked)
			require.Equal(t, 3, r.Schedules)
		})
	}
}

// A shader may declare a constant table of any size. MLX passes 8 or more elements in device memory. That is not a
// defect of the shader, so the report calls the launch unsupported by MLX.
func TestSanitizeOfConstantTables(t *testing.T) {
	const text = `
inline float pick(constant float* table, uint i) { return table[i %% 16]; }
kernel void f(constant float* table [[buffer(0)]], constant float* other [[buffer(1)]], device float* y [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  constant float* second = other + 1;
  y[i] = pick(table, i) + second[i %% 4]; %s
}
`
	l := launchBetweenSpaces()
	for more, want := range map[string]int{"": 0, "device const float* p = table;": 1} {
		k := inline(t, fmt.Sprintf(text, more))
		r, err := k.Sanitize(t.Context(), l, sanitizer.Config{Schedules: 1}, mlxc.Arange(mlxc.Float32, 0, 16, 1), mlxc.Arange(mlxc.Float32, 0, 7, 1))
		require.NoError(t, err)
		if r.AddressSpacesSkipped != "" {
			skip.Missing(t, skip.Clang, r.AddressSpacesSkipped)
		}
		require.Len(t, r.Findings, want)
		require.Equal(t, "the kernel needs the input table in constant memory, and MLX passes 16 elements in device memory: declare it device, or give it fewer than 8", r.UnsupportedByMLX)
	}
}

// An error that occurs with the table in either memory is reported for the memory that MLX uses.
func TestSanitizeOfWrongConstantTables(t *testing.T) {
	k := inline(t, `
kernel void f(constant float* table [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  threadgroup const float* p = table;
  y[i] = p[0];
}
`)
	r, err := k.Sanitize(t.Context(), launchBetweenSpaces(), sanitizer.Config{Schedules: 1}, mlxc.Arange(mlxc.Float32, 0, 16, 1))
	require.NoError(t, err)
	if r.AddressSpacesSkipped != "" {
		skip.Missing(t, skip.Clang, r.AddressSpacesSkipped)
	}
	require.NotEmpty(t, r.Findings)
	require.Equal(t, "inline.metal:3", r.Findings[0].Site.String())
	require.Contains(t, r.Findings[0].Message, "device")
	require.Empty(t, r.UnsupportedByMLX)
}

// A kernel's own buffer may have the name of a buffer that MLX adds, such as x_strides, and be passed to a helper.
func TestSanitizeOfOwnStrides(t *testing.T) {
	k := inline(t, `
inline uint first(constant uint* strides) { return strides[0]; }
kernel void f(device const float* x [[buffer(0)]], constant uint* x_strides [[buffer(1)]], device float* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = x[i] * first(x_strides);
}
`)
	strides := mlxc.FromSlice([]uint32{2, 1})
	r, err := k.Sanitize(t.Context(), launchBetweenSpaces(), sanitizer.Config{Schedules: 1}, mlxc.Arange(mlxc.Float32, 0, 32, 1), strides)
	require.NoError(t, err)
	require.Empty(t, r.Findings)
	require.Equal(t, "x_strides", r.Traffic.Buffers[1].Name)
	require.Equal(t, float32(62), mlxtest.Floats(t, r.Outputs[0])[31])
}
