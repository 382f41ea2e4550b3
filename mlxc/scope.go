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
// but another may Keep an array of it: hence the mutex.
type scope struct {
	id     uintptr
	parent *scope
	mu     sync.Mutex
	arrays []*Array
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

func (s *scope) add(a *Array) {
	a.scope = s
	s.mu.Lock()
	s.arrays = append(s.arrays, a)
	s.mu.Unlock()
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
	if a == nil || a.scope == nil {
		return a
	}
	s := a.scope
	s.mu.Lock()
	// Usually among the last ones made.
	found := false
	for i := len(s.arrays) - 1; i >= 0; i-- {
		if s.arrays[i] == a {
			s.arrays[i] = nil
			found = true
			break
		}
	}
	s.mu.Unlock()
	if !found {
		return a // the scope has ended
	}
	if s.parent != nil {
		s.parent.add(a)
	} else {
		a.scope = nil
		a.net()
	}
	return a
}
