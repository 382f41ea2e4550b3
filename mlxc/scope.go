package mlxc

// #include "mlxg.h"
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// scope owns arrays until it ends. Only the goroutine that opened it adds to it,
// but any may free or keep an array of it. An array's owner lock is taken before the
// scope's.
type scope struct {
	id     uintptr
	parent *scope
	mu     sync.Mutex
	arrays []*Array // nil where one was taken out
}

var scopes struct {
	byID sync.Map // uintptr → *scope
	last atomic.Uintptr
}

func scopeByID(id uintptr) *scope {
	s, ok := scopes.byID.Load(id)
	if !ok {
		return nil
	}
	return s.(*scope)
}

// add takes the array over. The caller holds its owner lock, or has it to itself.
func (s *scope) add(a *Array) {
	s.mu.Lock()
	a.scope, a.place = s, len(s.arrays)
	s.arrays = append(s.arrays, a)
	s.mu.Unlock()
}

// remove takes the array out, unless the scope has ended; it tells whether it did.
func (s *scope) remove(a *Array) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.place >= len(s.arrays) || s.arrays[a.place] != a {
		return false
	}
	s.arrays[a.place] = nil
	return true
}

// WithScope runs f and then frees every array that operations on the calling
// goroutine made meanwhile, except those that were handed out by Keep. Scopes
// nest. Goroutines that f starts are not covered.
//
// A training loop runs each step in a scope and keeps the new parameters:
//
//	mlxc.WithScope(func() {
//		_, grads, err = step(params)
//		…
//		params[i] = params[i].Sub(grads[i].MulScalar(rate)).Keep()
//	})
//
// Computations that were started, and arrays that were handed to others, are not
// disturbed: MLX counts its own references.
func WithScope(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &scope{id: scopes.last.Add(1)}
	outer := uintptr(C.mlxg_swap_scope(C.uintptr_t(s.id)))
	if outer != 0 {
		s.parent = scopeByID(outer)
	}
	scopes.byID.Store(s.id, s)
	defer func() {
		C.mlxg_swap_scope(C.uintptr_t(outer))
		scopes.byID.Delete(s.id)
		s.end()
	}()
	f()
}

// end frees what the scope still owns, in one call.
func (s *scope) end() {
	s.mu.Lock()
	arrays := s.arrays
	s.arrays = nil
	s.mu.Unlock()
	handles := make([]unsafe.Pointer, 0, len(arrays))
	for _, a := range arrays {
		if a == nil {
			continue
		}
		// The common case, nobody else holding it, without a trip through garbage
		// for each.
		if a.users.CompareAndSwap(0, 3*freedBit) {
			handles = append(handles, a.ctx)
		} else {
			a.Free()
		}
	}
	if len(handles) > 0 {
		garbage.addAll(handles)
	}
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
	s := a.scope
	if s == nil || !s.remove(a) {
		return a
	}
	if s.parent != nil {
		s.parent.add(a)
	} else {
		a.scope = nil
		a.net()
	}
	return a
}
