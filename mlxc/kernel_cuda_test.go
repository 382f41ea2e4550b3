package mlxc

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// NVRTC opens the included files at evaluation, by the names in the lines.
func TestIncludesOfCUDAKernels(t *testing.T) {
	if runtime.GOOS != "linux" {
		skip.Platform(t, "MLX has CUDA on Linux only")
	}
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	lines, err := includeLines([]string{"int first;\n", "int second;\n"})
	require.NoError(t, err)
	again, err := includeLines([]string{"int second;\n", "int first;\n"})
	require.NoError(t, err)
	texts := func(lines string) (list []string) {
		for line := range strings.Lines(lines) {
			name, ok := strings.CutPrefix(line, `#include "`)
			require.True(t, ok, line)
			name, ok = strings.CutSuffix(name, "\"\n")
			require.True(t, ok, line)
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			list = append(list, string(text))
		}
		return list
	}
	for range 2 { // each open of the file starts at its beginning
		require.Equal(t, []string{"int first;\n", "int second;\n"}, texts(lines))
	}
	require.Equal(t, []string{"int second;\n", "int first;\n"}, texts(again))
	first, _, _ := strings.Cut(lines, "\n")
	require.Contains(t, again, first, "equal texts share one file")

	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)

	t.Setenv("TMPDIR", filepath.Join(folder, "missing"))
	_, err = includeLines([]string{"int third;\n"})
	require.ErrorContains(t, err, "create an include file for NVRTC")
}

func TestCodeOfCUDAKernelsNeedsItsFunction(t *testing.T) {
	source := CUDAKernelSource{Name: "copy", Inputs: []string{"x"}, Outputs: []string{"y"}, Code: []byte("code")}
	_, err := NewCUDAKernel(source)
	require.ErrorContains(t, err, `Code has 4 bytes and Function is ""`)
	source.Code, source.Function = nil, "copy"
	_, err = NewCUDAKernel(source)
	require.ErrorContains(t, err, `Code has 0 bytes and Function is "copy"`)
}

func TestValuesOfCUDAKernelsAreInputs(t *testing.T) {
	source := CUDAKernelSource{Name: "copy", Inputs: []string{"x", "n"}, Outputs: []string{"y"}, Values: 1 << 2}
	_, err := NewCUDAKernel(source)
	require.ErrorContains(t, err, "Values is 0b100: it must have bits for the 2 inputs only")
}
