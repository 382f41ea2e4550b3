// Package msl reads Metal Shading Language text and prepares it for the places
// where this project runs it.
//
// It works on the text alone: no compiler, no preprocessor and no cgo. A
// tokenizer that loses nothing is the base of everything else:
//
//   - [Parse] takes a complete shader file, as Xcode would compile it, with the files
//     that it includes, and finds its kernels, their arguments and their bodies.
//   - [Kernel.MLX] turns one kernel into what MLX's custom-kernel interface takes:
//     names, a body with a prologue that binds the kernel's own argument names, and
//     a header. MLX writes the signature itself.
//   - [Host] takes the complete text that MLX then generates and rewrites it, token by
//     token, into C++ for the host executor.
//   - [CheckAddressSpaces] gives the same text to clang and reports what Apple's
//     compiler would refuse about address spaces.
//
// Every problem with a shader is an [*Error] that names file, line and column and says
// what to do. No input makes the package panic.
package msl
