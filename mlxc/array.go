package mlxc

// #include "mlxg.h"
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Array is an n-dimensional array of MLX: a node of a lazy graph, computed when its value is needed.
//
// An array is either valid, or invalid and carries the error of the operation that failed. Operations on an invalid
// array return an invalid array with the same error, so a chain of operations needs one check at its end. Functions
// that leave the graph (Eval, ToSlice, VJP, …) return the error. For an invalid array, Shape is nil, NDim, Dim and Size
// are 0, and DType is Invalid. The nil *Array is invalid too; its error is ErrNil.
//
// Arrays are immutable and may be used by any number of goroutines. MLX owns their memory. It is released by Free, by
// the end of the scope that owns the array (see WithScope), or by the garbage collector some time after the array
// became unreachable.
type Array struct {
	ctx        unsafe.Pointer // the handle, an *mlx::core::array; nil if invalid
	err        *error         // the error of an invalid array, else nil
	hostBacked bool           // the elements were written by the host, not computed; see IsHostBacked

	description atomic.Pointer[description] // cached by info

	// The number of calls that hold ctx, plus freedBit, destroyedBit and profiledBit.
	users atomic.Int32

	// The owner of the handle: a scope, which lists the array at index place, or the garbage collector, through
	// cleanup. The mutex owner guards these fields.
	place   int32
	owner   sync.Mutex
	scope   *scope
	cleanup *runtime.Cleanup
}

// The bits of Array.users lie above any possible number of concurrent calls. An invalid array has freedBit and
// destroyedBit.
const (
	freedBit     = 1 << (28 + iota) // Free was called
	destroyedBit                    // the handle is destroyed or queued
	profiledBit                     // the profile of arrays contains it
)

// acquire holds the handle for one call; the caller must call release. A handle is destroyed only when no call holds
// it, so Free may run concurrently with other calls.
func (a *Array) acquire() (unsafe.Pointer, error) {
	if a == nil || a.users.Add(1)&freedBit != 0 {
		return a.refuse()
	}
	forceGC()
	return a.ctx, nil
}

// refuse returns the error of an acquire that failed, and undoes its count.
func (a *Array) refuse() (unsafe.Pointer, error) {
	if a == nil {
		return nil, ErrNil
	}
	a.release()
	if a.err != nil {
		return nil, *a.err
	}
	return nil, ErrFreed
}

// release ends the hold of one acquire. It destroys the handle if the array was freed and no other call holds it.
func (a *Array) release() {
	if users := a.users.Add(-1); users&freedBit != 0 {
		a.destroy(users)
	}
	runtime.KeepAlive(a)
}

// destroy destroys the handle of a freed array if no call holds it. users is the value of a.users after the caller's
// release. Several releases may see the same value, because a later acquire and release restore it. Only one of them
// sets destroyedBit and destroys the handle.
func (a *Array) destroy(users int32) {
	if users&^profiledBit != freedBit || !a.users.CompareAndSwap(users, users|destroyedBit) {
		return
	}
	if users&profiledBit != 0 {
		unprofile(a.ctx)
	}
	freeQueue.destroy([]C.uintptr_t{handleWord(a.ctx)})
}

// Free releases the array's memory, unless another array or a pending computation needs it. Later uses of the array
// return ErrFreed. Free does nothing on a freed or invalid array.
func (a *Array) Free() {
	if a == nil || a.ctx == nil {
		return
	}
	if !a.markFreed() {
		return
	}
	a.owner.Lock()
	if a.cleanup != nil {
		a.cleanup.Stop()
	}
	if a.scope != nil {
		a.scope.remove(a)
		a.scope = nil
	}
	a.owner.Unlock()
	a.release()
}

// markFreed sets freedBit and holds the handle. It returns false if the bit was set already.
func (a *Array) markFreed() bool {
	for {
		u := a.users.Load()
		if u&freedBit != 0 {
			return false
		}
		if a.users.CompareAndSwap(u, u+freedBit+1) {
			return true
		}
	}
}

// newArray takes ownership of a handle. The scope with the id owns the array, or the garbage collector if scopeID is 0.
func newArray(ctx unsafe.Pointer, scopeID uintptr) *Array {
	a := &Array{ctx: ctx}
	if profiling.Load() > 0 {
		a.profile()
	}
	if s := scopeByID(scopeID); s != nil {
		s.add(a)
	} else {
		a.registerCleanup()
	}
	return a
}

// newArrays is newArray for several handles. It does not keep the slice.
func newArrays(handles []unsafe.Pointer, scopeID uintptr) []*Array {
	out := make([]*Array, len(handles))
	for i, ctx := range handles {
		out[i] = newArray(ctx, scopeID)
	}
	return out
}

// registerCleanup gives the array to the garbage collector. The caller holds owner, or is the only user of the array.
func (a *Array) registerCleanup() {
	dropped := func(ctx unsafe.Pointer) { freeQueue.enqueue(ctx) }
	if a.users.Load()&profiledBit != 0 {
		dropped = func(ctx unsafe.Pointer) {
			unprofile(ctx)
			freeQueue.enqueue(ctx)
		}
	}
	cleanup := runtime.AddCleanup(a, dropped, a.ctx)
	a.cleanup = &cleanup
	gcPacer.unscoped.Store(true)
}

// invalid returns an array that carries err.
func invalid(err error) *Array {
	a := &Array{err: &err}
	a.users.Store(freedBit | destroyedBit)
	return a
}

// InvalidArray returns an array that carries err. It panics if err is nil. It is for packages that build operations.
func InvalidArray(err error) *Array {
	if err == nil {
		panic("mlxc: InvalidArray needs an error")
	}
	return invalid(err)
}

// wrap returns the array of a C call, or an invalid array with its error.
func wrap(op string, r C.mlxg_result, operands ...*Array) *Array {
	if r.err != nil {
		return invalid(opError(op, takeError(r.err), operands...))
	}
	return newArray(r.ctx, uintptr(r.scope))
}

// wrapAll is wrap for a call with several results.
func wrapAll(op string, r C.mlxg_results, operands ...*Array) ([]*Array, error) {
	if r.err != nil {
		return nil, opError(op, takeError(r.err), operands...)
	}
	if r.n <= C.MLXG_FEW {
		return newArrays(r.few[:r.n], uintptr(r.scope)), nil
	}
	defer C.free(unsafe.Pointer(r.items))
	return newArrays(unsafe.Slice(r.items, r.n), uintptr(r.scope)), nil
}

// takeError frees a message of C and returns it as an error.
func takeError(p *C.char) error { return errorFromMLX(takeString(p)) }

// takeString frees a string of C and returns it as a Go string.
func takeString(p *C.char) string {
	defer C.free(unsafe.Pointer(p))
	return C.GoString(p)
}
