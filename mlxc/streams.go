package mlxc

/*
#include "mlxg.h"

#ifndef MLXG_NOT_SET_UP
static mlx_stream stream_or_default(void* s) {
  return (mlx_stream){s ? s : mlxg_real_stream()};
}
static bool on_gpu(mlx_stream s) {
  mlx_device d = mlx_device_new();
  mlx_device_type type = MLX_CPU;
  mlx_stream_get_device(&d, s);
  mlx_device_get_type(&type, d);
  mlx_device_free(d);
  return type == MLX_GPU;
}
static char* stream_text(mlx_string* text, void* ctx) {
  *text = mlx_string_new();
  return mlxg_end_status(mlx_stream_tostring(text, stream_or_default(ctx)));
}
static int stream_index(void* ctx) {
  int index = -1;
  mlx_stream_get_index(&index, stream_or_default(ctx));
  return index;
}
static int stream_device(void* ctx) {
  return on_gpu(stream_or_default(ctx));
}
static char* all_streams(mlx_vector_stream* streams) {
  *streams = mlx_vector_stream_new();
  mlxg_lock();
  char* err = mlxg_end_status(mlx_get_streams(streams));
  mlxg_unlock();
  return err;
}
#endif
*/
import "C"

import (
	"runtime"
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
	if initError != nil {
		return opError(op, initError)
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
	if initError != nil {
		return initError.Error()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var text C.mlx_string
	e := C.stream_text(&text, s.ctxOrDefault())
	defer C.mlx_string_free(text)
	if e != nil {
		return takeText(e).Error()
	}
	return C.GoString(C.mlx_string_data(text))
}

// Index is the stream's number among those of the process.
func (s *Stream) Index() int {
	if initError != nil {
		return -1
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return int(C.stream_index(s.ctxOrDefault()))
}

// Device is where the stream's work is done.
func (s *Stream) Device() Device {
	if initError != nil {
		return CPU
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return Device(C.stream_device(s.ctxOrDefault()))
}

// Streams names all streams of the process, those that MLX made for itself too.
func Streams() ([]string, error) {
	const op = "Streams"
	if initError != nil {
		return nil, opError(op, initError)
	}
	var streams C.mlx_vector_stream
	e := C.all_streams(&streams)
	defer C.mlx_vector_stream_free(streams)
	if e != nil {
		return nil, opError(op, takeText(e))
	}
	var names []string
	for i := range C.mlx_vector_stream_size(streams) {
		var s C.mlx_stream
		C.mlx_vector_stream_get(&s, streams, i)
		names = append(names, (&Stream{s.ctx}).String())
		C.mlx_stream_free(s)
	}
	return names, nil
}
