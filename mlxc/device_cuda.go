package mlxc

// #include "mlxg.h"
import "C"

import (
	"os"
	"strconv"
	"sync"
)

// CUDAAvailable reports whether MLX was built with CUDA and the machine has a device and a driver for it.
func CUDAAvailable() bool { return Check() == nil && bool(C.mlxg_cuda_available()) }

// TF32Enabled reports whether MLX multiplies float32 matrices on NVIDIA GPUs in TF32, with 11 significant bits. It does
// unless the environment variable MLX_ENABLE_TF32 is 0. MLX reads the variable once, as does this function.
//
// It is for packages that build operations.
func TF32Enabled() bool { return enableTF32() }

var enableTF32 = sync.OnceValue(func() bool {
	text, set := os.LookupEnv("MLX_ENABLE_TF32")
	n, err := strconv.Atoi(text)
	return !set || err == nil && n != 0 // MLX reads a malformed number as 0
})
