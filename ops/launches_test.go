package ops

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// The inputs of a launch match the kernel and are the same at every call.
func TestInputsOfLaunches(t *testing.T) {
	names := map[string]bool{}
	for _, l := range slices.Concat(KernelLaunches(RaggedCases), KernelLaunches(TypicalCases)) {
		require.False(t, names[l.Name()], "two launches have the name %s", l.Name())
		names[l.Name()] = true
	}
	for _, l := range KernelLaunches(RaggedCases) {
		if l.Case != "3x7" || !long.Full() && (l.Backend != mlxc.BackendMetal || l.DType != shortDType[l.Backend]) {
			continue
		}
		first, again := l.Inputs(), l.Inputs()
		_, err := l.Kernel.MetalSource(l.Launch, first...)
		require.NoError(t, err, l.Name())
		for i := range first {
			require.Equal(t, mlxtest.Floats(t, first[i]), mlxtest.Floats(t, again[i]))
			require.Contains(t, []mlxc.DType{l.DType, mlxc.Float32, mlxc.Uint32, mlxc.Int32}, first[i].DType())
		}
	}
}

// Every kernel translates to CUDA, in one dtype each.
func TestCUDATextOfEveryKernel(t *testing.T) {
	done := map[string]bool{}
	for _, l := range KernelLaunches(RaggedCases) {
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

// An operation does not panic if one of its launches fails, for example because the compiler finds no disk space.
func TestFailingLaunches(t *testing.T) {
	failed := mlxc.InvalidArray(errors.New("the disk is full"))
	for _, op := range operations {
		for _, c := range op.cases(RaggedCases) {
			for _, b := range backends {
				for failing, launches := 0, 1; failing < launches; failing++ {
					l := KernelLaunch{DType: mlxc.Float16, traced: b, run: c.run}
					launches = 0
					require.NotPanics(t, func() {
						l.trace(func(_ *customkernels.Kernel, launch customkernels.Launch, _ []*mlxc.Array) []*mlxc.Array {
							if launches++; launches-1 == failing {
								return slices.Repeat([]*mlxc.Array{failed}, len(launch.Outputs))
							}
							return placeholders(launch)
						})
					}, "launch %d of %s %s %v", failing, op.name, c.name, b)
				}
			}
		}
	}
}
