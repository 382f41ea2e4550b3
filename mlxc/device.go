package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Device is where operations run.
type Device int

// The devices of MLX. GPU is Metal on a Mac and CUDA on Linux, if MLX was built
// with it and the machine has one.
const (
	CPU Device = iota
	GPU
)

// String gives "cpu" or "gpu".
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

// DefaultDevice returns the device on which operations run if nothing else was
// said: the GPU where there is one.
func DefaultDevice() Device { return Device(C.mlxg_default_device()) }

// SetDefaultDevice changes the default for the whole process.
func SetDefaultDevice(d Device) error {
	if !d.Available() || C.mlxg_set_default_device(C.int(d)) != 0 {
		return opError("SetDefaultDevice", fmt.Errorf("this machine or this build of MLX has no device %v", d))
	}
	return nil
}

// CurrentDevice returns the device on which operations of the calling goroutine
// run at this point: that of the innermost WithDevice or WithStream, or else the
// default.
func CurrentDevice() Device {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return Device(C.mlxg_current_device())
}

// Backend is what executes the operations of a stream.
type Backend string

// The backends of MLX.
const (
	BackendCPU   Backend = "cpu"
	BackendMetal Backend = "metal"
	BackendCUDA  Backend = "cuda"
)

// CurrentBackend returns the backend of the stream on which operations of the
// calling goroutine run at this point. The placeholder GPU counts as Metal.
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

// Stream is a queue of work on a device. Work of one stream runs in order; MLX
// orders work of different streams by the data that flows between them.
type Stream struct {
	ctx unsafe.Pointer
}

// NewStream makes a stream that any goroutine may use. Streams live as long as
// the process.
func NewStream(d Device) (*Stream, error) {
	if !d.Available() {
		return nil, opError("NewStream", fmt.Errorf("this machine or this build of MLX has no device %v", d))
	}
	var s streamHandle
	if e := C.mlxg_stream_new(&s, C.int(d)); e != nil {
		return nil, opError("NewStream", takeText(e))
	}
	return &Stream{s}, nil
}

// WithDevice runs f; operations that f calls, on the same goroutine, run on d. Where d is not
// available it returns an error and does not run f.
func WithDevice(d Device, f func()) error {
	if !d.Available() {
		return opError("WithDevice", fmt.Errorf("this machine or this build of MLX has no device %v", d))
	}
	withStream(C.mlxg_device_stream(C.int(d)), f)
	return nil
}

// WithStream runs f; operations that f calls, on the same goroutine, go to s, or to
// the default stream if s is nil.
func WithStream(s *Stream, f func()) {
	if s == nil {
		s = &Stream{}
	}
	withStream(s.ctx, f)
}

// streamHandle is the ctx of an mlx_stream, nil for the default.
type streamHandle = unsafe.Pointer

func withStream(ctx streamHandle, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old := C.mlxg_swap_stream(ctx)
	defer C.mlxg_swap_stream(old)
	f()
}

// currentStream is the stream that was set for the calling goroutine, nil if none
// was.
func currentStream() streamHandle {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return C.mlxg_current_stream()
}
