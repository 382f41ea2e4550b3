package mlxc_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestWrongLaunches(t *testing.T) {
	kernel, err := mlxc.NewMetalKernel(mlxc.MetalKernelSource{
		Name: "my_metal", Inputs: []string{"x"}, Outputs: []string{"y"},
		Body: "y[thread_position_in_grid.x] = x[thread_position_in_grid.x];",
	})
	require.NoError(t, err)
	x := mlxc.Ones(mlxc.Float32, 3)
	output := mlxc.Output{Shape: []int{3}, DType: mlxc.Float32}
	threads := [3]int{3, 1, 1}
	for message, c := range map[string]struct {
		inputs            arrays
		outputs           []mlxc.Output
		grid, threadgroup [3]int
	}{
		"inputs of the kernel: 2 arrays, want 1":  {arrays{x, x}, []mlxc.Output{output}, threads, threads},
		"outputs of the kernel: 0 arrays, want 1": {arrays{x}, nil, threads, threads},
		"outputs of the kernel: 2 arrays, want 1": {arrays{x}, []mlxc.Output{output, output}, threads, threads},
		"the grid is [3 0 1] and the threadgroup [3 1 1]: each axis must be at least 1": {
			arrays{x}, []mlxc.Output{output}, [3]int{3, 0, 1}, threads,
		},
		"the grid is [3 1 1] and the threadgroup [-1 1 1]: each axis must be at least 1": {
			arrays{x}, []mlxc.Output{output}, threads, [3]int{-1, 1, 1},
		},
	} {
		_, err := kernel.Apply(mlxc.KernelLaunch{Outputs: c.outputs, Grid: c.grid, Threadgroup: c.threadgroup}, c.inputs...)
		require.ErrorContains(t, err, message)
	}
}

// A node is not taken for MLX's node of the same name. MLX's Copy has the elements of its input.
func TestNodesWithNamesOfMLX(t *testing.T) {
	notRun := new(int) // stands for a host function that never runs
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() {
		x := mlxc.FromSlice([]float32{1, 2})
		out, err := mlxc.HostFunction{
			Name: "Copy", Run: unsafe.Pointer(notRun),
			Outputs: []mlxc.Output{{Shape: []int{2}, DType: mlxc.Float32}},
		}.Apply(x)
		require.NoError(t, err)
		require.True(t, x.IsReady())
		require.False(t, out[0].IsReady())
	}))
}
