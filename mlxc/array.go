package mlxc

// #include "mlxg.h"
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Array is an n-dimensional array of MLX: a node of a lazy graph that is
// computed when its value is asked for.
//
// An array is valid, or carries the error of the operation that should have made
// it. Every operation on an invalid array gives an invalid array with the same
// error, so a chain of operations needs one check at its end; whatever leaves the
// graph (Eval, ToSlice, VJP, …) returns the error. Of an invalid array Shape is
// nil, NDim, Dim and Size are 0, and DType is Invalid.
//
// Arrays are immutable and may be used by any number of goroutines. Their memory
// is MLX's. It is given back by Free, by the end of the scope that owns the array
// (see WithScope), or, as a net, some time after the array became unreachable.
//
// The nil *Array is invalid too, with ErrNil.
type Array struct {
	ctx unsafe.Pointer // the handle: *mlx::core::array, nil if invalid
	err *error         // why it is invalid, nil if it is not
	own bool           // its elements were copied from Go's memory

	description atomic.Pointer[description] // once somebody has asked for it

	// The number of calls that hold ctx, and the bits below.
	users atomic.Int32

	// Who frees it: a scope, in whose list it has a place, or the collector, through
	// cleanup.
	place   int32
	owner   sync.Mutex
	scope   *scope
	cleanup *runtime.Cleanup
}

// The bits of users are far above any number of concurrent calls. An invalid array has
// those of a destroyed one.
const (
	freedBit     = 1 << (28 + iota) // Free was called
	destroyedBit                    // and nobody held the handle any more
	profiledBit                     // the profile of arrays has it
)

// acquire holds the handle for one call; the caller must release. A handle is
// destroyed only when nobody holds it, so a Free beside a running call is safe.
func (a *Array) acquire() (unsafe.Pointer, error) {
	if a == nil || a.users.Add(1)&freedBit != 0 {
		return a.refuse()
	}
	forceGC()
	return a.ctx, nil
}

// refuse says why acquire did not hold the handle.
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

func (a *Array) release() {
	if users := a.users.Add(-1); users&freedBit != 0 {
		a.destroy(users)
	}
	runtime.KeepAlive(a)
}

// destroy destroys the handle after Free, if it was the last user that left users behind.
// There may be several of those, one after the other: an acquire and release that come
// later find the same count.
func (a *Array) destroy(users int32) {
	if users&^profiledBit != freedBit || !a.users.CompareAndSwap(users, users|destroyedBit) {
		return
	}
	if users&profiledBit != 0 {
		unprofile(a.ctx)
	}
	freeQueue.destroy([]C.uintptr_t{handleWord(a.ctx)})
}

// Free gives the array's memory back, as far as no other array or pending
// computation needs it. Later uses of the array fail with ErrFreed. Calling it
// again, or on an invalid array, does nothing.
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

// markFreed sets the bit and holds the handle, or tells that it was set before.
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

// newArray takes ownership of a handle.
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

// newArrays takes ownership of several handles. It does not keep their slice.
func newArrays(handles []unsafe.Pointer, scopeID uintptr) []*Array {
	out := make([]*Array, len(handles))
	for i, ctx := range handles {
		out[i] = newArray(ctx, scopeID)
	}
	return out
}

// net registers the array with the collector. The caller holds owner, or has the
// array to itself.
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
}

// invalid makes an array that carries err.
func invalid(err error) *Array {
	a := &Array{err: &err}
	a.users.Store(freedBit | destroyedBit)
	return a
}

// InvalidArray returns an array that carries err, for packages that build operations
// of their own. It panics if err is nil, since there would be nothing to carry.
func InvalidArray(err error) *Array {
	if err == nil {
		panic("mlxc: InvalidArray needs an error")
	}
	return invalid(err)
}

// wrap makes the array of a finished call, or the invalid array of a failed one.
func wrap(op string, r C.mlxg_result, operands ...*Array) *Array {
	if r.err != nil {
		return invalid(opError(op, takeText(r.err), operands...))
	}
	return newArray(r.ctx, uintptr(r.scope))
}

// wrapAll does the same for a call with several results.
func wrapAll(op string, r C.mlxg_results, operands ...*Array) ([]*Array, error) {
	if r.err != nil {
		return nil, opError(op, takeText(r.err), operands...)
	}
	if r.n <= C.MLXG_FEW {
		return newArrays(r.few[:r.n], uintptr(r.scope)), nil
	}
	defer C.free(unsafe.Pointer(r.items))
	return newArrays(unsafe.Slice(r.items, r.n), uintptr(r.scope)), nil
}

// takeText frees a message of C and gives it as an error.
func takeText(p *C.char) error { return errorFromMLX(takeString(p)) }

// takeString frees a text of C and gives it as Go's.
func takeString(p *C.char) string {
	defer C.free(unsafe.Pointer(p))
	return C.GoString(p)
}
