// Package executor runs compiled Metal kernels on the CPU, in this process.
//
// If threads of a kernel synchronize, each thread of a threadgroup is a fiber, and fibers switch at barriers and SIMD
// functions. Otherwise a threadgroup is a loop. Threadgroups are distributed over the cores. Package toolchain compiles
// the kernels.
//
// MLX calls a launch on its own threads, through C functions. They never call Go: the Go runtime does not recognize a
// fiber's stack.
package executor
