// Package host compiles Metal kernels for the CPU.
//
// It takes a kernel that package msl has rewritten to C++, compiles it with the system's compiler
// against a metal_stdlib of its own, and keeps the result in a cache on disk. Package executor runs such
// kernels in this process, and package checked runs them under the checker.
//
// The package needs neither cgo nor MLX.
package host

// The limits of an Apple GPU. They hold for every launch.
const (
	MaxThreads           = 1024
	MaxThreadgroupMemory = 32768 // bytes
)
