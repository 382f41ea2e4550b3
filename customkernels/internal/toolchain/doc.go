// Package toolchain compiles C++ with the system's compiler and keeps the results in a cache on disk.
//
// Package executor runs the compiled kernels in this process, and package checker runs them under the checker. The
// package needs neither cgo nor MLX.
package toolchain
