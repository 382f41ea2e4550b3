package mlxc

// #include "mlxg.h"
import "C"

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// garbage destroys handles that nobody uses any more. Destroying one walks the graph
// behind it, so it needs the graph lock, which a long evaluation may hold: a Free
// or a cleanup never waits for it, but leaves the handle to whoever leaves the
// lock next, or to a moment later.
var freeQueue handleQueue

// Handles are numbers here: cgo looks into memory that holds pointers, at each of them.
type handleQueue struct {
	mu      sync.Mutex
	handles []C.uintptr_t
	waiting atomic.Int64 // len(handles), to be read without mu
}

// free destroys handles, now or later. It does not keep the slice.
func (h *handleQueue) destroy(handles []C.uintptr_t) {
	if len(handles) == 0 {
		return
	}
	if !C.mlxg_array_free(&handles[0], C.size_t(len(handles)), false) {
		h.add(handles...)
		return
	}
	h.flushHandles(false)
}

// later destroys what the collector found, together with what else it finds within a
// moment.
func (h *handleQueue) enqueue(ctx unsafe.Pointer) {
	const many = 256
	if h.add(handleWord(ctx))%many == 0 {
		h.flushHandles(false)
	}
}

// add takes over handles, to be destroyed in a moment, and tells how many are waiting.
func (h *handleQueue) add(handles ...C.uintptr_t) int {
	const moment = 5 * time.Millisecond
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.handles) == 0 {
		time.AfterFunc(moment, func() { h.flush(false) })
	}
	h.handles = append(h.handles, handles...)
	h.waiting.Store(int64(len(h.handles)))
	return len(h.handles)
}

// sweep destroys what is waiting as drain does, and forgets the functions that went with it.
func (h *handleQueue) flush(wait bool) {
	h.flushHandles(wait)
	releaseFunctions()
}

// drain destroys what is waiting, if the graph lock is free or wait is set.
func (h *handleQueue) flushHandles(wait bool) {
	if h.waiting.Load() == 0 {
		return
	}
	h.mu.Lock()
	handles := h.handles
	h.handles = nil
	h.waiting.Store(0)
	h.mu.Unlock()
	if len(handles) > 0 && !C.mlxg_array_free(&handles[0], C.size_t(len(handles)), C.bool(wait)) {
		h.add(handles...)
	}
}
