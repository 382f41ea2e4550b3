package mlxc

// #include "mlxg.h"
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// garbage holds handles that nobody uses any more. Destroying one walks the graph
// behind it, so it needs the graph lock, which a long evaluation may hold: a Free
// or a cleanup never waits for it, but leaves the handle to whoever leaves the
// lock next.
var garbage heap

type heap struct {
	mu      sync.Mutex
	handles []unsafe.Pointer
}

// add takes over a handle.
func (h *heap) add(ctx unsafe.Pointer) {
	h.mu.Lock()
	h.handles = append(h.handles, ctx)
	h.mu.Unlock()
	h.drain(false)
}

// addAll takes over many.
func (h *heap) addAll(handles []unsafe.Pointer) {
	h.mu.Lock()
	h.handles = append(h.handles, handles...)
	h.mu.Unlock()
	h.drain(false)
}

// drain destroys what is there, if the graph lock is free or wait is set.
func (h *heap) drain(wait bool) {
	h.mu.Lock()
	handles := h.handles
	h.handles = nil
	h.mu.Unlock()
	if len(handles) == 0 {
		return
	}
	if !C.mlxg_array_free(&handles[0], C.size_t(len(handles)), C.bool(wait)) {
		h.mu.Lock()
		h.handles = append(h.handles, handles...)
		h.mu.Unlock()
	}
}

// The collector does not see MLX's memory: a program that leaves its arrays to
// it would fill the machine long before the Go heap is large enough to collect.
// pace starts a collection whenever MLX's active memory has doubled since the
// last one.
var pacer struct {
	low     atomic.Int64 // the least active memory seen since the last collection
	running atomic.Bool
}

const paceFloor = 64 << 20 // below this, collecting costs more than it gives

func pace() {
	active := int64(ActiveMemory())
	low := pacer.low.Load()
	for active < low && !pacer.low.CompareAndSwap(low, active) {
		low = pacer.low.Load()
	}
	if active < max(2*low, paceFloor) || !pacer.running.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer pacer.running.Store(false)
		runtime.GC()
		// The cleanups run on a goroutine of the runtime, soon after; the figure falls as
		// they do, and low with it.
		pacer.low.Store(int64(ActiveMemory()))
	}()
}
