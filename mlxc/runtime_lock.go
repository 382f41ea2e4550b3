package mlxc

// #include "load.h"
import "C"

import (
	"runtime"
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
func locked(f func()) {
	onCleanThread(func() {
		runtime.LockOSThread()
		C.mlxg_enter()
		defer leave()
		f()
	})
}

// leave undoes LockOSThread and mlxg_enter.
func leave() {
	// Under the lock: whatever was freed meanwhile by goroutines that did not wait for it.
	freeQueue.flush(true)
	if stale := bool(C.mlxg_leave()); !stale {
		runtime.UnlockOSThread()
	}
}

// lockedCall makes a call of C that may reach Go functions and that enters, leaves, and
// takes its results; first is how many are of the first of two lists. The caller holds
// the operands.
//
// What the call needs is passed, since what it captured would go to the heap.
func lockedCall[T any](op string, operands []*Array, with T, call func(T) C.mlxg_results) (results []*Array, first int, err error) {
	if brokenThreads.Load() > 0 {
		return callOnCleanThread(op, operands, with, call)
	}
	return callLocked(op, operands, with, call)
}

func callOnCleanThread[T any](op string, operands []*Array, with T, call func(T) C.mlxg_results) (results []*Array, first int, err error) {
	onCleanThread(func() { results, first, err = callLocked(op, operands, with, call) })
	return results, first, err
}

func callLocked[T any](op string, operands []*Array, with T, call func(T) C.mlxg_results) (results []*Array, first int, err error) {
	runtime.LockOSThread()
	defer leave()
	r := call(with)
	results, err = wrapAll(op, r, operands...)
	return results, int(r.first), takeCallbackError(err)
}

// brokenThreads counts the threads that a goroutine was ended on.
var brokenThreads atomic.Int64

// onCleanThread runs f, on another thread if this one's tracing state is wrong:
// what the deferred calls of an ending goroutine ask for. Where the lock is still
// held further up, f has to run here; it then is inside the transform, as MLX
// believes.
func onCleanThread(f func()) {
	if brokenThreads.Load() > 0 {
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

// waitingForLock is the number of threads that wait for the graph lock.
func waitingForLock() int { return int(C.mlxg_waiting()) }
