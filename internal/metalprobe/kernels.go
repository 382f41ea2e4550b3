package main

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A kernel is a small Metal kernel with one input and one output, and the values that it must compute. All values
// are exact in the kernel's dtype.
type kernel struct {
	source  mlxc.MetalKernelSource
	dtype   mlxc.DType // of input and output
	threads int        // in one threadgroup
	input   []float32  // at least 8 elements: MLX passes fewer in the constant address space
	want    []float32
}

func kernels() []kernel {
	count := make([]float32, 64) // 0, 1, 2, ...
	plusOne, times := make([]float32, 64), make([]float32, 64)
	sums := make([]float32, 64)
	for i := range count {
		x := float32(i)
		count[i], plusOne[i], times[i] = x, x+1, 1.5*x
		sums[i] = 31 * 32 / 2 // of the first simdgroup
		if i >= 32 {
			sums[i] += 32 * 32
		}
	}
	// The square of an 8×8 matrix whose element in row r and column c is r+2c.
	matrix, square := make([]float32, 64), make([]float32, 64)
	for r := range 8 {
		for c := range 8 {
			matrix[8*r+c] = float32(r + 2*c)
			for k := range 8 {
				square[8*r+c] += float32((r + 2*k) * (k + 2*c))
			}
		}
	}
	return []kernel{
		{
			source: source("add_one", "", "y[thread_position_in_grid.x] = x[thread_position_in_grid.x] + 1;"),
			dtype:  mlxc.Float32, threads: 64, input: count, want: plusOne,
		},
		{
			source: source("simd_sum", "", "y[thread_position_in_grid.x] = simd_sum(x[thread_position_in_grid.x]);"),
			dtype:  mlxc.Float32, threads: 64, input: count, want: sums,
		},
		{
			source: source("simdgroup_matrix", "#include <metal_simdgroup_matrix>\n", `
  simdgroup_matrix<float, 8, 8> a, product;
  simdgroup_load(a, x, 8);
  simdgroup_multiply(product, a, a);
  simdgroup_store(product, y, 8);`),
			dtype: mlxc.Float32, threads: 32, input: matrix, want: square,
		},
		{
			source: source("half", "", "y[thread_position_in_grid.x] = x[thread_position_in_grid.x] * half(1.5f);"),
			dtype:  mlxc.Float16, threads: 64, input: count, want: times,
		},
		{
			source: source("bfloat16", "",
				"y[thread_position_in_grid.x] = x[thread_position_in_grid.x] * bfloat16_t(1.5f);"),
			dtype: mlxc.BFloat16, threads: 64, input: count, want: times,
		},
	}
}

func source(name, header, body string) mlxc.MetalKernelSource {
	return mlxc.MetalKernelSource{Name: name, Header: header, Inputs: []string{"x"}, Outputs: []string{"y"}, Body: body}
}

// launch describes one threadgroup whose output has the size of the input.
func (k kernel) launch() mlxc.KernelLaunch {
	return mlxc.KernelLaunch{
		Outputs: []mlxc.Output{{Shape: []int{len(k.input)}, DType: k.dtype}},
		Grid:    [3]int{k.threads, 1, 1}, Threadgroup: [3]int{k.threads, 1, 1},
	}
}

// check computes the output with apply, which adds a launch of the kernel to the graph, and compares it with the
// values that the kernel must compute.
func (k kernel) check(apply func(kernel, *mlxc.Array) (*mlxc.Array, error)) error {
	y, err := apply(k, mlxc.FromSlice(k.input).AsType(k.dtype))
	if err != nil {
		return err
	}
	got, err := mlxc.ToSlice[float32](y.AsType(mlxc.Float32))
	if err != nil {
		return err
	}
	if len(got) != len(k.want) {
		return fmt.Errorf("%d elements; there must be %d", len(got), len(k.want))
	}
	for i := range got {
		if got[i] != k.want[i] {
			return fmt.Errorf("element %d is %v; it must be %v", i, got[i], k.want[i])
		}
	}
	return nil
}

// applyMetal runs the kernel on Metal.
func applyMetal(k kernel, x *mlxc.Array) (*mlxc.Array, error) {
	custom, err := mlxc.NewMetalKernel(k.source)
	if err != nil {
		return nil, err
	}
	outputs, err := custom.Apply(k.launch(), x)
	if err != nil {
		return nil, err
	}
	return outputs[0], nil
}
