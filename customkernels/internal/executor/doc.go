// Package executor runs compiled Metal kernels on the CPU, in this process.
//
// It runs a kernel as a GPU would: every thread of a threadgroup is a fiber, barriers and SIMD
// functions are places where fibers switch, and threadgroups are spread over the cores. Package host
// compiles the kernels.
//
// A launch runs through C functions, because MLX calls them on a thread of its own. They never call
// Go: the Go runtime does not recognize a fiber's stack.
package executor
