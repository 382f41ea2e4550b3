package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"unsafe"
)

// MetalAvailable reports whether MLX was built with Metal and the machine supports it.
func MetalAvailable() bool { return Check() == nil && bool(C.mlxg_metal_available()) }

var errNoMetal = errors.New("this machine or this build of MLX has no Metal")

// MetalLibrary returns the path of the file with MLX's own Metal kernels. Without Metal it returns an error.
func MetalLibrary() (string, error) {
	const op = "MetalLibrary"
	if !MetalAvailable() {
		return "", opError(op, errNoMetal)
	}
	var path *C.char
	if e := C.mlxg_metal_library(&path); e != nil {
		return "", opError(op, takeError(e))
	}
	return takeString(path), nil
}

// SetMetalLibrary sets the path of the file with MLX's own Metal kernels. It must be called before the first operation
// that runs on the GPU. Without Metal it returns an error.
func SetMetalLibrary(path string) error {
	return withPath("SetMetalLibrary", path, func(p *C.char) *C.char { return C.mlxg_set_metal_library(p) })
}

// StartMetalCapture records GPU work until StopMetalCapture into a .gputrace file for Xcode. The file must not exist
// yet. Metal records only if the environment variable MTL_CAPTURE_ENABLED is 1. Without Metal it returns an error.
func StartMetalCapture(path string) error {
	return withPath("StartMetalCapture", path, func(p *C.char) *C.char { return C.mlxg_start_metal_capture(p) })
}

// StopMetalCapture ends the recording of StartMetalCapture.
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
		return opError(op, takeError(e))
	}
	return nil
}
