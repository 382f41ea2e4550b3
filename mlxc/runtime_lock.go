package mlxc

// #include "load.h"
import "C"

import (
	"runtime"
	"sync/atomic"
)

// locked runs f under the graph lock. In f, MLX may call Go functions.
//
// The lock is a recursive mutex in C. A Go function that MLX calls may use this package again; cgo keeps it on the
// thread that holds the lock. The lock is released by defer and not by a C++ guard: runtime.Goexit in such a function
// (require.FailNow of testify calls it) runs Go's deferred calls but skips C++ frames.
//
// After a Goexit, the tracing state of the thread in MLX is broken for good. The goroutine then keeps the thread
// locked, so the runtime ends both.
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
	// Other goroutines queue handles instead of waiting for the lock. Destroy these handles while this thread holds it.
	freeQueue.flush(true)
	if broken := bool(C.mlxg_leave()); !broken {
		runtime.UnlockOSThread()
	}
}

// lockedCall runs a C call in which MLX may call Go functions, and takes its results. The C function takes the graph
// lock itself. first is the length of the first list if the call returns two. The caller holds the operands.
//
// `with` is passed as an argument, because a captured variable would escape to the heap.
func lockedCall[T any](
	op string, operands []*Array, with T, call func(T) C.mlxg_results,
) (results []*Array, first int, err error) {
	if brokenThreads.Load() > 0 {
		return callOnCleanThread(op, operands, with, call)
	}
	return callLocked(op, operands, with, call)
}

// callOnCleanThread is callLocked on a thread whose tracing state is intact.
func callOnCleanThread[T any](
	op string, operands []*Array, with T, call func(T) C.mlxg_results,
) (results []*Array, first int, err error) {
	onCleanThread(func() { results, first, err = callLocked(op, operands, with, call) })
	return results, first, err
}

// callLocked runs the C call on this thread and releases the lock that the call took.
func callLocked[T any](
	op string, operands []*Array, with T, call func(T) C.mlxg_results,
) (results []*Array, first int, err error) {
	runtime.LockOSThread()
	defer leave()
	r := call(with)
	results, err = wrapAll(op, r, operands...)
	return results, int(r.first), takeCallbackError(err)
}

// brokenThreads counts the threads on which runtime.Goexit skipped frames of MLX.
var brokenThreads atomic.Int64

// onCleanThread runs f on another thread if the tracing state of this one is broken, as it is in the deferred calls of
// an ending goroutine. If a caller further up still holds the lock, f runs on this thread: MLX then still treats it as
// part of the transform.
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
				runtime.Goexit() // f ended its goroutine; end the caller's too
			}
			return
		}
	}
	f()
}

// insideCallback reports whether this thread runs a Go function that MLX called. The goroutine must be locked to its
// thread.
func insideCallback() bool { return C.mlxg_enter_depth() > 0 }

// waitingForLock returns the number of threads that wait for the graph lock.
func waitingForLock() int { return int(C.mlxg_waiting()) }
