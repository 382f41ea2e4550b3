package ops

import (
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Every kernel of every shader file is among the launches, in every dtype, for a host and
// for a GPU.
func TestLaunchesHaveEveryKernel(t *testing.T) {
	files, err := fs.Glob(customkernels.Shaders(), "*.metal")
	require.NoError(t, err)
	var want, got []string
	for _, file := range files {
		lib, err := customkernels.Load(customkernels.Shaders(), file)
		require.NoError(t, err)
		for _, kernel := range lib.Names() {
			for _, dtype := range gradientDTypes {
				for _, d := range []mlxc.Backend{mlxc.BackendCPU, mlxc.BackendMetal} {
					if d == mlxc.BackendMetal && (kernel == "embedding_sorted_keys" || kernel == "softmax_forward") {
						continue // a GPU leaves sorting and the softmax's value to MLX
					}
					if d == mlxc.BackendCPU && kernel == "transpose_2d_blocks" {
						continue // a host moves elements of tiles
					}
					if d == mlxc.BackendCPU && kernel == "attention_mask_bits" {
						continue // a host reads booleans
					}
					if kernel == "attention_delta_of_output" && dtype == mlxc.Float32 {
						continue // not exact enough
					}
					want = append(want, fmt.Sprintln(kernel, dtype, d))
				}
			}
		}
	}
	for _, set := range []CaseSet{RaggedCases, TypicalCases} {
		got = nil
		for _, l := range Launches(set) {
			if l.Backend != mlxc.BackendCUDA {
				got = append(got, fmt.Sprintln(l.Kernel.Name(), l.DType, l.Backend))
			}
		}
		slices.Sort(got)
		require.ElementsMatch(t, want, slices.Compact(got))
	}
}

// The inputs of a launch fit it, and are the same at every call.
func TestInputsOfLaunches(t *testing.T) {
	names := map[string]bool{}
	for _, l := range slices.Concat(Launches(RaggedCases), Launches(TypicalCases)) {
		require.False(t, names[l.Name()], "%s is there twice", l.Name())
		names[l.Name()] = true
	}
	for _, l := range Launches(RaggedCases) {
		if l.Case != "3x7" || !long.Full() && (l.Backend != mlxc.BackendMetal || l.DType != shortDType[l.Backend]) {
			continue
		}
		first, again := l.Inputs(), l.Inputs()
		_, err := l.Kernel.MetalSource(l.Launch, first...)
		require.NoError(t, err, l.Name())
		for i := range first {
			require.Equal(t, floats(t, first[i]), floats(t, again[i]))
			require.Contains(t, []mlxc.DType{l.DType, mlxc.Float32, mlxc.Uint32, mlxc.Int32}, first[i].DType())
		}
	}
}

// The text of every kernel, in one dtype each, can be rewritten for CUDA.
func TestCUDATextOfEveryKernel(t *testing.T) {
	done := map[string]bool{}
	for _, l := range Launches(RaggedCases) {
		if l.Backend == mlxc.BackendCPU || done[l.Kernel.Name()] {
			continue
		}
		done[l.Kernel.Name()] = true
		text, err := l.Kernel.CUDASource(l.Launch, l.Inputs()...)
		require.NoError(t, err, l.Name())
		require.Contains(t, text, "__global__ void __launch_bounds__(", l.Name())
		require.NotContains(t, text, "kernel void", l.Name())
	}
	require.Greater(t, len(done), 30)
}
