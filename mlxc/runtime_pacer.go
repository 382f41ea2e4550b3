package mlxc

import (
	"runtime"
	"sync/atomic"
)

// The collector does not see MLX's memory: a program that leaves its arrays to
// it would fill the machine long before the Go heap is large enough to collect.
// pace starts a collection whenever MLX's active memory has doubled since the
// last one. What makes elements calls it: evaluation, and new leaves of minPacedBytes bytes,
// below which the Go heap grows with them.
var gcPacer struct {
	low     atomic.Int64 // the least active memory seen since the last collection
	running atomic.Bool
}

const (
	minActiveBytes = 64 << 20 // below this, collecting costs more than it gives
	minPacedBytes  = 4 << 10
)

func paceGC() {
	active := int64(ActiveMemory())
	low := gcPacer.low.Load()
	for active < low && !gcPacer.low.CompareAndSwap(low, active) {
		low = gcPacer.low.Load()
	}
	if active < max(2*low, minActiveBytes) || !gcPacer.running.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer gcPacer.running.Store(false)
		runtime.GC()
		// The cleanups run on a goroutine of the runtime, soon after; the figure falls as
		// they do, and low with it.
		gcPacer.low.Store(int64(ActiveMemory()))
	}()
}
