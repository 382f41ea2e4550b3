package customkernels

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A minimal race: threads of two simdgroups access one element.
func TestSanitizeRace(t *testing.T) {
	k := inline(t, `
kernel void f(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  y[i] = tile[63 - i];
}
`)
	x := mlxc.Arange(mlxc.Float32, 0, 64, 1)
	r, err := k.Sanitize(t.Context(), Launch{
		Grid: [3]int{64}, Threadgroup: [3]int{64}, Outputs: []mlxc.Output{{Shape: []int{64}, DType: mlxc.Float32}},
	}, sanitizer.Config{}, x)
	require.NoError(t, err)
	require.Len(t, r.Findings, 1)
	f := r.Findings[0]
	require.Equal(t, sanitizer.FindingRace, f.Kind)
	require.Equal(t, "tile", f.Buffer)
	require.ElementsMatch(t, []int{5, 6}, []int{f.Site.Line, f.Other.Line})
	require.Contains(t, f.Message, "put threadgroup_barrier(mem_flags::mem_threadgroup) between them")
}

// An impossible output shape is an error of Sanitize, as it is of Launch.
func TestSanitizeOfImpossibleOutputs(t *testing.T) {
	k := inline(t, `
kernel void f(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  y[i] = 1;
}
`)
	zero := float32(0)
	for _, c := range []struct {
		shape            []int
		launch, sanitize string // parts of the errors
	}{
		{[]int{-1}, "a negative axis", "a negative axis"},
		{[]int{1<<31 - 1, 1<<31 - 1, 4}, "exceeds the address space", "larger than 1 TiB"},
	} {
		l := Launch{Grid: [3]int{1}, Outputs: []mlxc.Output{{Shape: c.shape, DType: mlxc.Float32}}}
		for range 2 {
			require.ErrorContains(t, k.Launch(l)[0].Err(), c.launch)
			_, err := k.Sanitize(t.Context(), l, sanitizer.Config{})
			require.ErrorContains(t, err, c.sanitize)
			l.InitValue = &zero
		}
	}
}

// Elements of an output in Launch.Undefined may stay unwritten.
func TestSanitizeOfUndefinedOutputs(t *testing.T) {
	k := inline(t, `
kernel void f(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  y[i] = 1;
}
`)
	for output, want := range map[string]int{"out": 1, "undefined": 0} {
		s := oneLaunch(t, "grid=8 threadgroup=8 y="+output+":float32[16]\n")
		l, inputs, err := k.Arguments(s, 1)
		require.NoError(t, err)
		r, err := k.Sanitize(t.Context(), l, sanitizer.Config{Schedules: 1}, inputs...)
		require.NoError(t, err)
		require.Len(t, r.Findings, want)
	}
}

// Package sanitizer generates the source of the installed MLX version, and other tests compare the source.
func TestSanitizerMatchesMLXVersion(t *testing.T) {
	require.Contains(t, []string{sanitizer.MLXVersion, "0.32.2"}, mlxc.Version())
}
