package mlxc

// #include "mlxg.h"
import "C"

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// scope owns arrays until it ends. Only the goroutine that opened it adds to it,
// but any may free or keep an array of it. An array's owner lock is taken before the
// scope's. A scope that has ended is opened again, so an array may still name it that it
// no longer has.
type scope struct {
	id     uintptr
	mu     sync.Mutex
	parent *scope
	arrays []*Array // nil where one was taken out
}

// scopes are all that were ever opened at the same time. C keeps the id of a thread's
// innermost one.
var scopes struct {
	all   atomic.Pointer[[]*scope] // by id−1
	mu    sync.Mutex               // of what follows, and of writing
	ended []*scope
}

// scopeByID gives the scope of the calling goroutine that has the id, nil for 0.
func scopeByID(id uintptr) *scope {
	if id == 0 {
		return nil
	}
	return (*scopes.all.Load())[id-1]
}

// newScope gives a scope that is not open.
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
	// A copy: other goroutines read the old one.
	all = append(slices.Clip(all), s)
	scopes.all.Store(&all)
	return s
}

// add takes the array over. The caller holds its owner lock, or has it to itself.
func (s *scope) add(a *Array) {
	s.mu.Lock()
	a.scope, a.place = s, int32(len(s.arrays))
	s.arrays = append(s.arrays, a)
	s.mu.Unlock()
}

// remove takes the array out, unless the scope has ended; it tells whether it did, and
// the enclosing scope.
func (s *scope) remove(a *Array) (parent *scope, removed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int(a.place)
	if n >= len(s.arrays) || s.arrays[n] != a {
		return nil, false
	}
	s.arrays[n] = nil
	// A scope in which a long loop frees what it makes does not grow.
	for n == len(s.arrays)-1 && s.arrays[n] == nil {
		s.arrays = s.arrays[:n]
		n = max(n-1, 0)
	}
	return s.parent, true
}

// WithScope runs f and then frees every array that operations on the calling
// goroutine made meanwhile, except those that were handed out by Keep. Scopes
// nest. Goroutines that f starts are not covered. A panic in f ends the scope too.
//
// Computations that were started, and arrays that were handed to others, are not
// disturbed: MLX counts its own references.
func WithScope(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The scope stands before C knows of it, so no result finds it missing.
	s := newScope()
	outer := C.mlxg_swap_scope(C.uintptr_t(s.id))
	s.open(scopeByID(uintptr(outer)))
	defer func() {
		C.mlxg_swap_scope(outer)
		s.end()
	}()
	f()
}

// WithScopeErr is WithScope for a function that can fail, whose error it returns. A
// training loop runs each step in a scope and keeps the new parameters:
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

// open begins a scope inside another one, which may be nil.
func (s *scope) open(parent *scope) {
	s.mu.Lock()
	s.parent = parent
	s.mu.Unlock()
}

// end frees what the scope still owns.
func (s *scope) end() {
	s.mu.Lock()
	arrays := s.arrays
	s.arrays = nil
	s.mu.Unlock()
	// The youngest first: what only refers to others goes alone, and not a whole graph
	// behind its last node.
	var batch [64]C.uintptr_t
	handles := batch[:0]
	for _, a := range slices.Backward(arrays) {
		switch {
		case a == nil:
		case a.users.CompareAndSwap(0, freedBit|destroyedBit):
			// The common case: nobody else holds it.
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

// Keep takes the array out of the scope that owns it and gives it to the
// enclosing scope, or to the collector if there is none. It returns a.
func (a *Array) Keep() *Array {
	if _, err := a.acquire(); err != nil {
		return a
	}
	defer a.release()
	a.owner.Lock()
	defer a.owner.Unlock()
	if a.scope == nil {
		return a
	}
	parent, removed := a.scope.remove(a)
	switch {
	case !removed:
	case parent != nil:
		parent.add(a)
	default:
		a.scope = nil
		a.registerCleanup()
	}
	return a
}

// OutsideScopes runs f outside of every scope: arrays that operations on the calling goroutine
// make meanwhile belong to the collector, whatever scope it is called in. It is for
// what outlives the caller, such as a cache.
func OutsideScopes(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	outer := C.mlxg_swap_scope(0)
	defer func() { C.mlxg_swap_scope(outer) }()
	f()
}
