package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// elementGrid returns the geometry of kernels whose threads do not cooperate and take neighboring elements: the number
// of threads in the grid and in a threadgroup. On a CPU 64 threads let a few cores balance their load.
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
