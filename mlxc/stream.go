package mlxc

// #include "mlxg.h"
import "C"

import (
	"runtime"
	"strings"
	"unsafe"
)

// Stream is a queue of work on a device. Work on one stream runs in order; MLX orders work on different streams by data
// dependencies. Methods of a nil *Stream use the calling goroutine's current stream; WithStream(nil, f) selects the
// default stream.
type Stream struct {
	ctx unsafe.Pointer
}

// NewStream makes a stream that any goroutine may use. A stream lives as long as the process.
func NewStream(d Device) (*Stream, error) {
	if !d.Available() {
		return nil, noDevice("NewStream", d)
	}
	var s streamHandle
	if e := C.mlxg_stream_new(&s, C.int(d)); e != nil {
		return nil, opError("NewStream", takeError(e))
	}
	return &Stream{s}, nil
}

// WithStream runs f. Operations that f calls on the same goroutine run on s. If s is nil, they run on the default
// device (see SetDefaultDevice), also inside WithDevice.
func WithStream(s *Stream, f func()) {
	if s == nil {
		s = &Stream{}
	}
	withStream(s.ctx, f)
}

// handle returns the stream's handle, or nil for a nil stream. The C functions that it is passed to read nil as the
// calling thread's current stream.
func (s *Stream) handle() unsafe.Pointer {
	if s == nil {
		return nil
	}
	return s.ctx
}

// realHandle returns the stream's handle. For a nil stream it returns the handle of the calling thread's current
// stream, or of the default stream if no stream or the placeholder GPU is current.
func (s *Stream) realHandle() unsafe.Pointer {
	if ctx := s.handle(); ctx != nil {
		return ctx
	}
	return C.mlxg_real_stream()
}

// Synchronize waits until the work started on the stream is done. It returns the first error of AsyncEval on the stream
// that no other call has returned, and clears it.
func (s *Stream) Synchronize() error {
	const op = "Stream.Synchronize"
	if err := Check(); err != nil {
		return opError(op, err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if e := C.mlxg_synchronize(s.realHandle()); e != nil {
		return opError(op, takeError(e))
	}
	freeQueue.flush(false)
	return nil
}

// Synchronize waits for all work on the calling goroutine's current stream, such as that of AsyncEval. It returns
// errors like Stream.Synchronize.
func Synchronize() error { return (*Stream)(nil).Synchronize() }

// String returns MLX's name of the stream, such as "Stream(Device(cpu, 0), 1)", or the error if MLX cannot be used.
func (s *Stream) String() string {
	if err := Check(); err != nil {
		return err.Error()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var text *C.char
	if e := C.mlxg_stream_text(s.handle(), &text); e != nil {
		return takeError(e).Error()
	}
	return takeString(text)
}

// Index returns the stream's number in the process, or -1 if MLX cannot be used.
func (s *Stream) Index() int {
	if Check() != nil {
		return -1
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return int(C.mlxg_stream_index(s.handle()))
}

// Device returns the device on which the stream's work runs, or CPU if MLX cannot be used.
func (s *Stream) Device() Device {
	if Check() != nil {
		return CPU
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return Device(C.mlxg_stream_device(s.handle()))
}

// StreamNames returns the names of all streams of the process, including streams that MLX made for itself.
func StreamNames() ([]string, error) {
	const op = "StreamNames"
	if err := Check(); err != nil {
		return nil, opError(op, err)
	}
	var names *C.char
	if e := C.mlxg_streams(&names); e != nil {
		return nil, opError(op, takeError(e))
	}
	return strings.Split(strings.TrimSpace(takeString(names)), "\n"), nil
}

// streamHandle is the ctx of an mlx_stream. As the current stream, nil stands for the default stream.
type streamHandle = unsafe.Pointer

func withStream(ctx streamHandle, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old := C.mlxg_swap_stream(ctx)
	defer C.mlxg_swap_stream(old)
	f()
}

// currentStream returns the stream set for the calling goroutine, or nil if none is set.
func currentStream() streamHandle {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return C.mlxg_current_stream()
}
