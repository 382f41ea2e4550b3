package mlxc

// #include "mlxg.h"
import "C"

import (
	"os"
	"strconv"
	"sync"
)

// CUDAAvailable reports whether MLX was built with CUDA and the machine has a device and a
// driver for it.
func CUDAAvailable() bool { return Check() == nil && bool(C.mlxg_cuda_available()) }

// TF32 reports whether MLX multiplies float32 matrices on NVIDIA GPUs as TF32, of 11 bits:
// unless the environment variable MLX_ENABLE_TF32 is 0. MLX reads it once, and so does this.
func TF32Enabled() bool { return enableTF32() }

var enableTF32 = sync.OnceValue(func() bool {
	text, set := os.LookupEnv("MLX_ENABLE_TF32")
	n, err := strconv.Atoi(text)
	return !set || err == nil && n != 0 // What is no number is 0 for MLX.
})
