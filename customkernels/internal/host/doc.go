// Package host compiles and runs Metal kernels on the CPU.
//
// It takes a kernel that package msl has rewritten to C++, compiles it with
// the system's compiler against a metal_stdlib of its own, keeps the library
// in a cache on disk, and runs it as a GPU would: every thread of a
// threadgroup is a fiber, barriers and SIMD functions are places where fibers
// wait for each other, and threadgroups are spread over the cores.
//
// What runs a launch is a set of C functions, because MLX calls them on a
// thread of its own. Go is never called from there: a fiber's stack is none
// that the Go runtime would recognise.
package host
