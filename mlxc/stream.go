package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// ctxOrDefault is the stream's handle, nil for that of a nil stream, which stands for the
// current one.
func (s *Stream) ctxOrDefault() unsafe.Pointer {
	if s == nil {
		return nil
	}
	return s.ctx
}

// ctxOrReal is the stream's handle, and for a nil stream that of the current one.
func (s *Stream) ctxOrReal() unsafe.Pointer {
	if ctx := s.ctxOrDefault(); ctx != nil {
		return ctx
	}
	return C.mlxg_real_stream()
}

// Synchronize waits until the work that was started on the stream is done, on a nil stream
// for that of the calling goroutine's current stream. It returns the first error of AsyncEval on
// the stream that no other call has returned, and forgets it.
func (s *Stream) Synchronize() error {
	const op = "Stream.Synchronize"
	if err := Check(); err != nil {
		return opError(op, err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if e := C.mlxg_synchronize(s.ctxOrReal()); e != nil {
		return opError(op, takeText(e))
	}
	freeQueue.flush(false)
	return nil
}

// Synchronize waits until the work is done that was started on the calling goroutine's
// current stream, such as by AsyncEval.
func Synchronize() error { return (*Stream)(nil).Synchronize() }

// String names the stream as MLX does, such as "Stream(Device(cpu, 0), 1)".
func (s *Stream) String() string {
	if err := Check(); err != nil {
		return err.Error()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var text *C.char
	if e := C.mlxg_stream_text(s.ctxOrDefault(), &text); e != nil {
		return takeText(e).Error()
	}
	return takeString(text)
}

// Index is the stream's number among those of the process.
func (s *Stream) Index() int {
	if Check() != nil {
		return -1
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return int(C.mlxg_stream_index(s.ctxOrDefault()))
}

// Device is where the stream's work is done.
func (s *Stream) Device() Device {
	if Check() != nil {
		return CPU
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return Device(C.mlxg_stream_device(s.ctxOrDefault()))
}

// StreamNames names all streams of the process, those that MLX made for itself too.
func StreamNames() ([]string, error) {
	const op = "StreamNames"
	if err := Check(); err != nil {
		return nil, opError(op, err)
	}
	var names *C.char
	if e := C.mlxg_streams(&names); e != nil {
		return nil, opError(op, takeText(e))
	}
	return strings.Split(strings.TrimSpace(takeString(names)), "\n"), nil
}

// Stream is a queue of work on a device. Work of one stream runs in order; MLX
// orders work of different streams by the data that flows between them.
type Stream struct {
	ctx unsafe.Pointer
}

// NewStream makes a stream that any goroutine may use. StreamNames live as long as
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
