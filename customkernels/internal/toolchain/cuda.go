package toolchain

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrNoCUDA is the error without CUDA's headers, which NVRTC needs to compile kernels.
var ErrNoCUDA = errors.New("CUDA's headers are not found: set CUDA_HOME to a CUDA toolkit, or to the folder " +
	"nvidia/cu13 of the " +
	"official Python packages (nvidia-cuda-runtime, nvidia-cuda-nvrtc, nvidia-cuda-cccl), so that its " +
	"include/cuda_runtime.h is there")

// CUDAAvailable returns nil if CUDA's headers are where MLX looks for them: in the folder that CUDA_HOME names, or else
// CUDA_PATH, or else /usr/local/cuda.
func CUDAAvailable() error {
	home := "/usr/local/cuda"
	for _, name := range []string{"CUDA_PATH", "CUDA_HOME"} {
		if v, ok := os.LookupEnv(name); ok {
			home = v
		}
	}
	if _, err := os.Stat(filepath.Join(home, "include", "cuda_runtime.h")); err != nil {
		return ErrNoCUDA
	}
	return nil
}
