package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// elementGrid returns the number of threads in the grid and in a threadgroup for kernels whose threads are independent.
// Neighboring threads process neighboring elements. On a CPU, 64 threads balance the load of a few cores.
func elementGrid(b mlxc.Backend, elements int) (grid, threadgroup int) {
	if b == mlxc.BackendCPU {
		return min(elements, 64), 1
	}
	return elements, 256
}

// wholeSimdgroups returns the number of threads that hold n elements, perThread each: a positive multiple of 32.
func wholeSimdgroups(n, perThread int) int {
	threads := ceilDiv(n, perThread)
	return max(ceilDiv(threads, 32)*32, 32)
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
