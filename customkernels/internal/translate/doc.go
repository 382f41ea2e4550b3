// Package translate rewrites Metal kernels for MLX, for the host and for CUDA.
//
// [MLX] divides a kernel of package msl into the parts that MLX's custom kernels take. [MLXSource.Text] returns the
// complete text that MLX generates from these parts for a launch. [Host] rewrites such a generated text into C++ for
// the host executor and the checker. [CUDA] rewrites it for MLX's custom CUDA kernels.
//
// All translations keep the shader's lines in order, so that a compiler's messages lead back to the shader's file.
package translate
