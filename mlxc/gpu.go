package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"unsafe"
)

// MetalAvailable reports whether MLX was built with Metal and the machine has it.
func MetalAvailable() bool { return Check() == nil && bool(C.mlxg_metal_available()) }

// CUDAAvailable reports whether MLX was built with CUDA and the machine has a device and a
// driver for it.
func CUDAAvailable() bool { return Check() == nil && bool(C.mlxg_cuda_available()) }

var errNoMetal = errors.New("this machine or this build of MLX has no Metal")

// TF32 reports whether MLX multiplies float32 matrices on NVIDIA GPUs as TF32, of 11 bits:
// unless the environment variable MLX_ENABLE_TF32 is 0. MLX reads it once, and so does this.
func TF32() bool { return enableTF32() }

var enableTF32 = sync.OnceValue(func() bool {
	text, set := os.LookupEnv("MLX_ENABLE_TF32")
	n, err := strconv.Atoi(text)
	return !set || err == nil && n != 0 // What is no number is 0 for MLX.
})

// MetalLibrary returns the path of the file with MLX's own Metal kernels. Without Metal it
// is an error.
func MetalLibrary() (string, error) {
	const op = "MetalLibrary"
	if !MetalAvailable() {
		return "", opError(op, errNoMetal)
	}
	var path *C.char
	if e := C.mlxg_metal_library(&path); e != nil {
		return "", opError(op, takeText(e))
	}
	return takeString(path), nil
}

// SetMetalLibrary sets the path of the file with MLX's own Metal kernels. It must be called
// before the first operation that runs on the GPU. Without Metal it is an error.
func SetMetalLibrary(path string) error {
	return withPath("SetMetalLibrary", path, func(p *C.char) *C.char { return C.mlxg_set_metal_library(p) })
}

// StartMetalCapture records what the GPU does from here to StopMetalCapture in a file that
// Xcode opens (.gputrace), which must not exist yet. Metal records only if the environment
// variable MTL_CAPTURE_ENABLED is 1. Without Metal it is an error.
func StartMetalCapture(path string) error {
	return withPath("StartMetalCapture", path, func(p *C.char) *C.char { return C.mlxg_start_metal_capture(p) })
}

// StopMetalCapture ends what StartMetalCapture began.
func StopMetalCapture() error {
	return withPath("StopMetalCapture", "", func(*C.char) *C.char { return C.mlxg_stop_metal_capture() })
}

func withPath(op, path string, f func(*C.char) *C.char) error {
	if !MetalAvailable() {
		return opError(op, errNoMetal)
	}
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	if e := f(p); e != nil {
		return opError(op, takeText(e))
	}
	return nil
}
