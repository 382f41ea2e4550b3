package mlxc

import (
	"runtime"
	"sync/atomic"
)

// gcPacer decides when to run Go's garbage collector, which does not see MLX's memory. Without it, a program that
// leaves its arrays to the collector would exhaust memory long before the Go heap is large enough to collect. A
// collection starts when MLX's active memory has doubled since the last one, if arrays without a scope were made
// meanwhile. A collection cannot free the arrays of scopes.
var gcPacer struct {
	low      atomic.Int64 // the minimum of active memory since the last collection
	unscoped atomic.Bool  // arrays without a scope were made since the last collection
	running  atomic.Bool
}

const (
	minActiveBytes = 64 << 20 // below this, a collection costs more than it frees
	minPacedBytes  = 4 << 10  // smaller arrays are paced by the Go heap
)

// paceGC starts a collection if active memory has doubled. Evaluations call it, as do new arrays of at least
// minPacedBytes.
func paceGC() {
	active := int64(ActiveMemory())
	low := gcPacer.low.Load()
	for active < low && !gcPacer.low.CompareAndSwap(low, active) {
		low = gcPacer.low.Load()
	}
	if active < max(2*low, minActiveBytes) || !gcPacer.unscoped.Load() || !gcPacer.running.CompareAndSwap(false, true) {
		return
	}
	gcPacer.unscoped.Store(false)
	go func() {
		defer gcPacer.running.Store(false)
		runtime.GC()
		// The cleanups run soon after, on a goroutine of the runtime. Active memory falls meanwhile, and low follows.
		gcPacer.low.Store(int64(ActiveMemory()))
	}()
}
