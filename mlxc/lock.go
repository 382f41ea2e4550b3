package mlxc

// #include "mlxg.h"
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// locked runs f, which may reach Go functions through MLX, under the graph lock.
//
// The lock is a recursive mutex of C, because the Go functions that MLX calls may
// use this package again; cgo keeps them on the thread that holds it. It is
// released by defer and not by a guard of C++: runtime.Goexit in such a function
// (testify's require does it) runs Go's deferred calls but skips C++ frames.
//
// After that, this thread's tracing state in MLX is wrong for good, so the
// goroutine keeps the thread locked and the runtime ends both.
func locked(f func()) { onSoundThread(func() { lockedHere(f) }) }

func lockedHere(f func()) {
	runtime.LockOSThread()
	C.mlxg_enter()
	defer func() {
		// Under the lock: whatever was freed meanwhile by goroutines that did not
		// wait for it.
		garbage.drain(true)
		releaseFunctions()
		if stale := bool(C.mlxg_leave()); !stale {
			runtime.UnlockOSThread()
		}
	}()
	f()
}

// staleThreads counts the threads that a goroutine was ended on.
var staleThreads atomic.Int64

// onSoundThread runs f, on another thread if this one's tracing state is wrong:
// what the deferred calls of an ending goroutine ask for. Where the lock is still
// held further up, f has to run here; it then is inside the transform, as MLX
// believes.
func onSoundThread(f func()) {
	if staleThreads.Load() > 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		move := bool(C.mlxg_is_stale()) && !insideCallback()
		if move {
			returned, stream, scope := false, C.mlxg_current_stream(), C.mlxg_current_scope()
			done := make(chan struct{})
			go func() {
				defer close(done)
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				defer C.mlxg_swap_scope(C.mlxg_swap_scope(scope))
				withStream(stream, f)
				returned = true
			}()
			<-done
			if !returned {
				runtime.Goexit() // f ended the goroutine; this one is meant
			}
			return
		}
	}
	f()
}

// insideCallback reports whether this thread is in a Go function that MLX calls.
// The goroutine must be locked to its thread.
func insideCallback() bool { return C.mlxg_enter_depth() > 0 }

// functions maps ids to the Go functions that MLX holds, and to the pins of memory.
var functions struct {
	mu   sync.RWMutex
	next uintptr
	byID map[uintptr]any
}

// register gives f an id that stays valid until MLX has dropped every closure
// made with it.
func register(f any) C.uintptr_t {
	functions.mu.Lock()
	defer functions.mu.Unlock()
	if functions.byID == nil {
		functions.byID = map[uintptr]any{}
	}
	functions.next++
	functions.byID[functions.next] = f
	return C.uintptr_t(functions.next)
}

func function(id uintptr) any {
	functions.mu.RLock()
	defer functions.mu.RUnlock()
	return functions.byID[id]
}

// releaseFunctions forgets the functions that MLX has dropped.
func releaseFunctions() {
	var ids [16]C.uintptr_t
	for n := len(ids); n == len(ids); {
		if n = int(C.mlxg_take_released(&ids[0], C.size_t(len(ids)))); n == 0 {
			return
		}
		functions.mu.Lock()
		for _, id := range ids[:n] {
			if pin, ok := functions.byID[uintptr(id)].(*runtime.Pinner); ok {
				pin.Unpin()
			}
			delete(functions.byID, uintptr(id))
		}
		functions.mu.Unlock()
	}
}
