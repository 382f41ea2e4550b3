package mlxc

// #include "mlxg.h"
import "C"

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// scope owns arrays until it ends. New arrays come from the goroutine that opened the scope. Any goroutine may free an
// array, or keep it, which moves it to the parent. Lock order: an array's owner lock, then the scope's mu, then the
// parent's mu. Ended scopes are recycled, so a stale Array.scope may point to a scope that another goroutine has
// opened; removeLocked checks for that.
type scope struct {
	id     uintptr
	mu     sync.Mutex
	parent *scope
	arrays []*Array // nil for a removed array
}

// scopes holds every scope, open or recycled. C keeps the id of a thread's innermost scope.
var scopes struct {
	all   atomic.Pointer[[]*scope] // indexed by id−1
	mu    sync.Mutex               // guards ended and writes to all
	ended []*scope
}

// scopeByID returns the open scope with the id, or nil for id 0.
func scopeByID(id uintptr) *scope {
	if id == 0 {
		return nil
	}
	return (*scopes.all.Load())[id-1]
}

// newScope returns a recycled or new scope, which the caller opens.
func newScope() *scope {
	scopes.mu.Lock()
	defer scopes.mu.Unlock()
	if n := len(scopes.ended); n > 0 {
		s := scopes.ended[n-1]
		scopes.ended = scopes.ended[:n-1]
		return s
	}
	var all []*scope
	if p := scopes.all.Load(); p != nil {
		all = *p
	}
	s := &scope{id: uintptr(len(all) + 1)}
	// Copy: other goroutines read the old slice without a lock.
	all = append(slices.Clip(all), s)
	scopes.all.Store(&all)
	return s
}

// add takes ownership of an array. The caller holds the array's owner lock, or is the only user of the array.
func (s *scope) add(a *Array) {
	s.mu.Lock()
	a.scope, a.place = s, int32(len(s.arrays))
	s.arrays = append(s.arrays, a)
	s.mu.Unlock()
}

// remove removes an array from the scope. It does nothing if the scope has ended and no longer owns the array.
func (s *scope) remove(a *Array) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(a)
}

// removeLocked is remove for a caller that holds s.mu. It reports whether the scope owned the array.
func (s *scope) removeLocked(a *Array) bool {
	n := int(a.place)
	if n >= len(s.arrays) || s.arrays[n] != a {
		return false
	}
	s.arrays[n] = nil
	// Trim the list, so that it does not grow in a long loop that frees its arrays.
	for n == len(s.arrays)-1 && s.arrays[n] == nil {
		s.arrays = s.arrays[:n]
		n = max(n-1, 0)
	}
	return true
}

// moveOut moves an array to the enclosing scope, or to the garbage collector if there is none. The caller holds the
// array's owner lock. A scope that owns an array is open, and it cannot end while its mu is held. The enclosing scope
// ends later, so it is still open when it takes the array.
func (s *scope) moveOut(a *Array) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.removeLocked(a):
	case s.parent != nil:
		s.parent.add(a)
	default:
		a.scope = nil
		a.registerCleanup()
	}
}

// WithScope runs f and then frees every array that operations on the calling goroutine made in f, except the arrays on
// which Keep was called. Scopes nest. Goroutines started by f are not covered. The scope also ends if f panics.
//
// Running computations, and arrays that depend on a freed array, are not affected: MLX counts its own references.
func WithScope(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The scope must exist before C knows its id, so that every result finds it.
	s := newScope()
	outer := C.mlxg_swap_scope(C.uintptr_t(s.id))
	s.open(scopeByID(uintptr(outer)))
	defer func() {
		C.mlxg_swap_scope(outer)
		s.end()
	}()
	f()
}

// WithScopeErr is WithScope for a function that returns an error. A training loop runs each step in a scope and keeps
// the new parameters:
//
//	err := mlxc.WithScopeErr(func() error {
//		_, grads, err := step(params)
//		if err != nil {
//			return err
//		}
//		for i, p := range params {
//			params[i] = p.Sub(grads[i].MulScalar(rate)).Keep()
//			p.Free()
//		}
//		return mlxc.Eval(params...)
//	})
func WithScopeErr(f func() error) (err error) {
	WithScope(func() { err = f() })
	return err
}

// open starts a scope inside parent, which may be nil.
func (s *scope) open(parent *scope) {
	s.mu.Lock()
	s.parent = parent
	s.mu.Unlock()
}

// end frees the arrays that the scope still owns.
func (s *scope) end() {
	s.mu.Lock()
	arrays := s.arrays
	s.arrays = nil
	s.mu.Unlock()
	// Free the youngest arrays first. Each call then destroys one node, instead of the whole graph behind the last
	// node.
	var batch [64]C.uintptr_t
	handles := batch[:0]
	for _, a := range slices.Backward(arrays) {
		switch {
		case a == nil:
		case a.users.CompareAndSwap(0, freedBit|destroyedBit):
			// Common case: no call holds the array.
			if handles = append(handles, handleWord(a.ctx)); len(handles) == len(batch) {
				freeQueue.destroy(handles)
				handles = handles[:0]
			}
		default:
			a.Free()
		}
	}
	freeQueue.destroy(handles)
	clear(arrays)
	const small = 4096
	if cap(arrays) <= small {
		s.mu.Lock()
		s.arrays = arrays[:0]
		s.mu.Unlock()
	}
	scopes.mu.Lock()
	scopes.ended = append(scopes.ended, s)
	scopes.mu.Unlock()
}

// Keep moves the array from its scope to the enclosing scope, or to the garbage collector if there is none. It returns
// a.
func (a *Array) Keep() *Array {
	if _, err := a.acquire(); err != nil {
		return a
	}
	defer a.release()
	a.owner.Lock()
	defer a.owner.Unlock()
	if a.scope != nil {
		a.scope.moveOut(a)
	}
	return a
}

// OutsideScopes runs f outside all scopes: the garbage collector owns the arrays that operations on the calling
// goroutine make in f. Use it for arrays that outlive the caller, such as a cache.
func OutsideScopes(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	outer := C.mlxg_swap_scope(0)
	defer func() { C.mlxg_swap_scope(outer) }()
	f()
}
