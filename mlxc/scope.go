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
// scope's.
type scope struct {
	id     uintptr
	parent *scope
	mu     sync.Mutex
	arrays []*Array // nil where one was taken out
}

// scopes are the open ones. C keeps the id of a thread's innermost one.
var scopes struct {
	open atomic.Pointer[[]*scope] // by id−1; each place is its own scope's to read
	mu   sync.Mutex               // of what follows, and of writing
	free []uintptr                // ids not in use
}

// scopeByID gives the scope of the calling goroutine that has the id, nil for 0.
func scopeByID(id uintptr) *scope {
	if id == 0 {
		return nil
	}
	return (*scopes.open.Load())[id-1]
}

// openScope makes a scope inside another one, which may be nil.
func openScope(parent *scope) *scope {
	s := &scope{parent: parent, arrays: *lists.Get().(*[]*Array)}
	scopes.mu.Lock()
	defer scopes.mu.Unlock()
	if n := len(scopes.free); n > 0 {
		s.id = scopes.free[n-1]
		scopes.free = scopes.free[:n-1]
		(*scopes.open.Load())[s.id-1] = s
		return s
	}
	var open []*scope
	if p := scopes.open.Load(); p != nil {
		open = *p
	}
	// A copy: other goroutines read the old one.
	open = append(slices.Clip(open), s)
	s.id = uintptr(len(open))
	scopes.open.Store(&open)
	return s
}

// lists are empty lists of scopes that have ended.
var lists = sync.Pool{New: func() any { return new([]*Array) }}

// add takes the array over. The caller holds its owner lock, or has it to itself.
func (s *scope) add(a *Array) {
	s.mu.Lock()
	a.scope, a.place = s, int32(len(s.arrays))
	s.arrays = append(s.arrays, a)
	s.mu.Unlock()
}

// remove takes the array out, unless the scope has ended; it tells whether it did.
func (s *scope) remove(a *Array) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int(a.place)
	if n >= len(s.arrays) || s.arrays[n] != a {
		return false
	}
	s.arrays[n] = nil
	// A scope in which a long loop frees what it makes does not grow.
	for n == len(s.arrays)-1 && s.arrays[n] == nil {
		s.arrays = s.arrays[:n]
		n = max(n-1, 0)
	}
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
	// The scope stands before C knows of it, so no result finds it missing.
	outer := C.mlxg_current_scope()
	s := openScope(scopeByID(uintptr(outer)))
	C.mlxg_swap_scope(C.uintptr_t(s.id))
	defer func() {
		C.mlxg_swap_scope(outer)
		s.end()
	}()
	f()
}

// end frees what the scope still owns.
func (s *scope) end() {
	scopes.mu.Lock()
	(*scopes.open.Load())[s.id-1] = nil
	scopes.free = append(scopes.free, s.id)
	scopes.mu.Unlock()
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
			if handles = append(handles, word(a.ctx)); len(handles) == len(batch) {
				garbage.free(handles)
				handles = handles[:0]
			}
		default:
			a.Free()
		}
	}
	garbage.free(handles)
	clear(arrays)
	arrays = arrays[:0]
	lists.Put(&arrays)
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
