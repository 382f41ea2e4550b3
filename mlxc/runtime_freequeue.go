package mlxc

// #include "mlxg.h"
import "C"

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// freeQueue destroys unused handles. Destroying a handle walks the graph behind it and needs the graph lock, which a
// long evaluation may hold. Free and cleanups do not wait for the lock: they queue the handle. The next thread that
// releases the lock destroys the handle, or a timer does.
var freeQueue handleQueue

// handleQueue holds handles as numbers: cgo would check each pointer in memory that holds pointers.
type handleQueue struct {
	mu      sync.Mutex
	handles []C.uintptr_t
	waiting atomic.Int64 // len(handles), readable without mu
}

// destroy destroys handles, at once if the graph lock is free. It does not keep the slice.
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

// enqueue queues the handle of an unreachable array. Handles of one collection are destroyed together.
func (h *handleQueue) enqueue(ctx unsafe.Pointer) {
	const batch = 256
	if h.add(handleWord(ctx))%batch == 0 {
		h.flushHandles(false)
	}
}

// add queues handles, starts the timer that destroys them, and returns the number of queued handles.
func (h *handleQueue) add(handles ...C.uintptr_t) int {
	const delay = 5 * time.Millisecond
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.handles) == 0 {
		time.AfterFunc(delay, func() { h.flush(false) })
	}
	h.handles = append(h.handles, handles...)
	h.waiting.Store(int64(len(h.handles)))
	return len(h.handles)
}

// flush destroys the queued handles as flushHandles does, then drops the functions that only they referred to.
func (h *handleQueue) flush(wait bool) {
	h.flushHandles(wait)
	releaseFunctions()
}

// flushHandles destroys the queued handles if the graph lock is free, or waits for the lock if wait is set.
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
