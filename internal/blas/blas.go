// Package blas describes the BLAS of MLX's packages for CPUs.
package blas

import "runtime"

// IsReference reports whether MLX multiplies matrices on a CPU with the reference BLAS, which uses one core and no
// vectors. MLX's package for Linux has it; on macOS, MLX calls Accelerate.
const IsReference = runtime.GOOS != "darwin"
