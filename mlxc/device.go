package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"runtime"
)

// Device is a kind of device on which operations run.
type Device int

// The devices of MLX. GPU is Metal on a Mac and CUDA on Linux, if MLX was built with it and the machine has one.
const (
	CPU Device = iota
	GPU
)

// String returns "cpu" or "gpu".
func (d Device) String() string {
	switch d {
	case CPU:
		return "cpu"
	case GPU:
		return "gpu"
	}
	return fmt.Sprintf("Device(%d)", int(d))
}

// Available reports whether the device can be used.
func (d Device) Available() bool {
	return (d == CPU || d == GPU) && C.mlxg_device_stream(C.int(d)) != nil
}

// noDevice is the error of an operation on a device that is not available, or whose libraries cannot be loaded.
func noDevice(op string, d Device) error {
	if err := Check(); err != nil {
		return opError(op, err)
	}
	return opError(op, fmt.Errorf("this machine or this build of MLX has no device %v", d))
}

// DefaultDevice returns the device on which operations run by default: the GPU if there is one.
func DefaultDevice() Device { return Device(C.mlxg_default_device()) }

// SetDefaultDevice sets the default device of the process.
func SetDefaultDevice(d Device) error {
	if !d.Available() || C.mlxg_set_default_device(C.int(d)) != 0 {
		return noDevice("SetDefaultDevice", d)
	}
	return nil
}

// CurrentDevice returns the device on which operations of the calling goroutine run: the device of the innermost
// WithDevice or WithStream, else the default.
func CurrentDevice() Device {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return Device(C.mlxg_current_device())
}

// Backend is the implementation that executes the operations of a stream.
type Backend string

// The backends of MLX.
const (
	BackendCPU   Backend = "cpu"
	BackendMetal Backend = "metal"
	BackendCUDA  Backend = "cuda"
)

// CurrentBackend returns the backend of the calling goroutine's current stream. Inside WithPlaceholderGPU it is Metal.
func CurrentBackend() Backend {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	switch C.mlxg_current_backend() {
	case 1:
		return BackendMetal
	case 2:
		return BackendCUDA
	}
	return BackendCPU
}

// WithDevice runs f. Operations that f calls on the same goroutine run on d. If d is not available, WithDevice returns
// an error and does not run f.
func WithDevice(d Device, f func()) error {
	if !d.Available() {
		return noDevice("WithDevice", d)
	}
	withStream(C.mlxg_device_stream(C.int(d)), f)
	return nil
}
