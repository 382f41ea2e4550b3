package mlxc

/*
#include "mlxg.h"

#ifndef MLXG_NOT_SET_UP
static char* metallib_path(mlx_string* path) {
  *path = mlx_string_new();
  return mlxg_end_status(mlx_metal_get_metallib_path(path));
}
static char* set_metallib_path(const char* path) {
  return mlxg_end_status(mlx_metal_set_metallib_path(path));
}
static char* start_capture(const char* path) {
  mlxg_lock();
  char* err = mlxg_end_status(mlx_metal_start_capture(path));
  mlxg_unlock();
  return err;
}
static char* stop_capture(void) {
  mlxg_lock();
  char* err = mlxg_end_status(mlx_metal_stop_capture());
  mlxg_unlock();
  return err;
}
#endif
*/
import "C"

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"unsafe"
)

// MetalAvailable reports whether MLX was built with Metal and the machine has it.
func MetalAvailable() bool {
	var yes C.bool
	return C.mlx_metal_is_available(&yes) == 0 && bool(yes)
}

// CUDAAvailable reports whether MLX was built with CUDA and the machine has a device and a
// driver for it.
func CUDAAvailable() bool {
	var yes C.bool
	return C.mlx_cuda_is_available(&yes) == 0 && bool(yes)
}

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
	var path C.mlx_string
	e := C.metallib_path(&path)
	defer C.mlx_string_free(path)
	if e != nil {
		return "", opError(op, takeText(e))
	}
	return C.GoString(C.mlx_string_data(path)), nil
}

// SetMetalLibrary sets the path of the file with MLX's own Metal kernels. It must be called
// before the first operation that runs on the GPU. Without Metal it is an error.
func SetMetalLibrary(path string) error {
	return withPath("SetMetalLibrary", path, func(p *C.char) *C.char { return C.set_metallib_path(p) })
}

// StartMetalCapture records what the GPU does from here to StopMetalCapture in a file that
// Xcode opens (.gputrace), which must not exist yet. Metal records only if the environment
// variable MTL_CAPTURE_ENABLED is 1. Without Metal it is an error.
func StartMetalCapture(path string) error {
	return withPath("StartMetalCapture", path, func(p *C.char) *C.char { return C.start_capture(p) })
}

// StopMetalCapture ends what StartMetalCapture began.
func StopMetalCapture() error {
	return withPath("StopMetalCapture", "", func(*C.char) *C.char { return C.stop_capture() })
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
