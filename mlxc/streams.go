package mlxc

// #include "mlxg.h"
import "C"

import (
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
	garbage.sweep(false)
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

// Streams names all streams of the process, those that MLX made for itself too.
func Streams() ([]string, error) {
	const op = "Streams"
	if err := Check(); err != nil {
		return nil, opError(op, err)
	}
	var names *C.char
	if e := C.mlxg_streams(&names); e != nil {
		return nil, opError(op, takeText(e))
	}
	return strings.Split(strings.TrimSpace(takeString(names)), "\n"), nil
}
