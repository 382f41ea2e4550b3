package executor

/*
#include "runtime.h"

typedef int (*mlxg_prepare)(void*, char*, size_t);
typedef void (*mlxg_run)(void*, const mlxg_view*, const mlxg_view*);
typedef void (*mlxg_release)(void*);

static int mlxg_host_call(void* prepare, void* run, void* release, void* ctx, const mlxg_view* in,
                          const mlxg_view* out, char* err, size_t errlen) {
  int failed = ((mlxg_prepare)prepare)(ctx, err, errlen);
  if (!failed) ((mlxg_run)run)(ctx, in, out);
  ((mlxg_release)release)(ctx);
  return failed;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// A Buffer is a row-contiguous array for Library.Run: the address of its first element and its shape.
type Buffer struct {
	Data  unsafe.Pointer
	Shape []int
}

// Run runs the kernel once, without MLX, and returns when it has ended. It is for tests. The buffers may point to Go
// memory.
func (l *Library) Run(grid, threadgroup [3]int, inputs []Metadata, in, out []Buffer) error {
	if len(in) != len(inputs) {
		return fmt.Errorf("executor: %d inputs, but metadata of %d: the numbers must be equal", len(in), len(inputs))
	}
	prepare, run, release, ctx, err := l.NewLaunch(grid, threadgroup, inputs...)
	if err != nil {
		return err
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	views := func(buffers []Buffer) *C.mlxg_view {
		v := make([]C.mlxg_view, len(buffers)+1)
		pinner.Pin(&v[0])
		for i, b := range buffers {
			n := len(b.Shape)
			shape, strides := make([]C.int32_t, n+1), make([]C.int64_t, n+1)
			step := 1
			for d := n - 1; d >= 0; d-- {
				shape[d], strides[d] = C.int32_t(b.Shape[d]), C.int64_t(step)
				step *= b.Shape[d]
			}
			for _, p := range []any{&shape[0], &strides[0]} {
				pinner.Pin(p)
			}
			if b.Data != nil {
				pinner.Pin(b.Data)
			}
			v[i] = C.mlxg_view{data: b.Data, shape: &shape[0], strides: &strides[0], ndim: C.int32_t(n)}
		}
		return &v[0]
	}
	var message [256]C.char
	if C.mlxg_host_call(prepare, run, release, ctx, views(in), views(out), &message[0], C.size_t(len(message))) != 0 {
		return errors.New("executor: " + C.GoString(&message[0]))
	}
	return nil
}
