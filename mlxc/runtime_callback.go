package mlxc

// #include "load.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Func is a function of arrays that transforms take and give. It must be pure:
// MLX may call it once, often, or on arrays without values. Arrays that it
// captures count as constants and get no gradient.
//
// While MLX runs it, the calling goroutine holds the graph lock. So it must not wait
// for another goroutine that uses this package: neither would go on. If other goroutines wait for
// the lock for more than five seconds meanwhile, a warning of log/slog names them and the function.
type Func = func(args []*Array) []*Array

// AsFunc makes a Func of a function that can fail, such as what Grad returns: where f gives an
// error, the Func gives one invalid array that carries it. So gradients go under other
// transforms, as in Vmap(AsFunc(Grad(loss)), …) for those of single samples.
func AsFunc(f func(args []*Array) ([]*Array, error)) Func {
	if f == nil {
		return nil
	}
	return func(args []*Array) []*Array {
		results, err := f(args)
		if err != nil {
			return invalidArrays(1, err)
		}
		return results
	}
}

// VJPFunc computes a vector-Jacobian product: from the arguments of a function,
// the cotangents of its outputs and the outputs, the cotangents of the arguments,
// one for each, of the same shape.
type VJPFunc = func(primals, cotangents, outputs []*Array) []*Array

// JVPFunc computes a Jacobian-vector product: from the arguments of a function and
// their tangents, one for each, of the same shape, the tangents of the outputs, one for
// each, of the same shape. An argument that does not change has a tangent of zeros.
type JVPFunc = func(primals, tangents []*Array) []*Array

// VmapFunc computes a function for all elements at once. The arguments that mapped
// names have the elements along their first axis, the others are shared by all. Every
// result has the elements along its first axis.
type VmapFunc = func(args []*Array, mapped []bool) []*Array

// callbackError is the error of the last Go function that failed under MLX; C++
// only knows that it failed. The graph lock guards it.
var callbackError error

// takeCallbackError replaces MLX's own word for a failed closure by the error
// that the Go function had.
func takeCallbackError(err error) error {
	if err == nil || callbackError == nil {
		return err
	}
	cause := callbackError
	callbackError = nil
	var op *Error
	if errors.As(err, &op) {
		e := *op
		e.Err = cause
		return &e
	}
	return cause
}

// checkpointFunc is a function of Checkpoint's.
type checkpointFunc Func

// compileFunc is a function of Compile's.
type compileFunc Func

//export mlxgCallClosure
func mlxgCallClosure(id C.uintptr_t, in *C.mlxg_members, out unsafe.Pointer) (status C.int) {
	switch f := function(id).(type) {
	case checkpointFunc:
		return guardedInScope(out, func() []*Array { return f(arraysOf(in)) }, in)
	case compileFunc:
		if in.n == 0 || !bool(C.mlxg_traced(*in.handles)) {
			// Nothing is compiled, and the caller's scope is that of another goroutine.
			return guardedInScope(out, func() []*Array { return f(arraysOf(in)) }, in)
		}
		status = guarded(out, func() []*Array { return f(arraysOf(in)) })
	case Func:
		status = guarded(out, func() []*Array { return f(arraysOf(in)) })
	}
	return status
}

// forgetting is guarded for what must not leave values behind: a function that is to be
// computed again, and rules. The handles that it makes, those of its arguments too, are
// freed when MLX has its results: until then MLX cannot give their memory back.
func guardedInScope(out unsafe.Pointer, f func() []*Array, args ...*C.mlxg_members) (status C.int) {
	WithScope(func() {
		for _, a := range args {
			a.scope = C.mlxg_current_scope()
		}
		status = guarded(out, f)
	})
	return status
}

//export mlxgCallCustom
func mlxgCallCustom(id C.uintptr_t, primals, cotangents, outputs *C.mlxg_members, out unsafe.Pointer) C.int {
	return guardedInScope(out, func() []*Array {
		return function(id).(VJPFunc)(arraysOf(primals), arraysOf(cotangents), arraysOf(outputs))
	}, primals, cotangents, outputs)
}

//export mlxgCallJVP
func mlxgCallJVP(id C.uintptr_t, primals, tangents *C.mlxg_members, out unsafe.Pointer) C.int {
	return guardedInScope(out, func() []*Array {
		return function(id).(JVPFunc)(arraysOf(primals), arraysOf(tangents))
	}, primals, tangents)
}

//export mlxgCallVmap
func mlxgCallVmap(id C.uintptr_t, args *C.mlxg_members, axes *C.int, out unsafe.Pointer) C.int {
	return guardedInScope(out, func() []*Array {
		mapped := make([]bool, args.n)
		for i, axis := range unsafe.Slice(axes, args.n) {
			mapped[i] = axis >= 0
		}
		return function(id).(VmapFunc)(arraysOf(args), mapped)
	}, args)
}

// guarded runs a Go function for MLX and gives its results to out. It returns 1 if the
// function failed.
func guarded(out unsafe.Pointer, f func() []*Array) (status C.int) {
	status = 1
	finished := false
	lockWatch.enter()
	defer func() {
		lockWatch.leave()
		if finished {
			return
		}
		if v := recover(); v != nil {
			callbackError = newPanicError(v)
			return
		}
		// Neither returned nor panicked: runtime.Goexit. It cannot be stopped, and
		// the C++ frames below are about to be skipped.
		brokenThreads.Add(1)
		C.mlxg_mark_stale()
	}()
	results := f()
	var few [16]C.uintptr_t
	h, err := acquireIn(few[:], "the results of a Go function", results)
	if err != nil {
		callbackError = err
		finished = true
		return 1
	}
	defer h.release()
	C.mlxg_return(out, h.ptr(), h.n())
	finished = true
	return 0
}

// arraysOf takes over the handles that a Go function is called with.
func arraysOf(m *C.mlxg_members) []*Array {
	return newArrays(unsafe.Slice(m.handles, m.n), uintptr(m.scope))
}

// failed is what stands for the n results of a function that failed.
func invalidArrays(n int, err error) []*Array {
	results := make([]*Array, n)
	for i := range results {
		results[i] = invalid(err)
	}
	return results
}

// errCount says that a function gave another number of arrays than its contract.
func errCount(what string, got, want int) error {
	return fmt.Errorf("%s: %d arrays, want %d", what, got, want)
}

// functions are the Go functions that C knows by an id, and the pins of memory.
var functions struct {
	mu   sync.Mutex
	byID []any         // nil where an id is not in use; 0 never is
	free []C.uintptr_t // ids not in use
}

// register gives f an id that stays valid until it is forgotten: by releaseFunctions once
// MLX has dropped every closure made with it, or by the caller if a call of C uses it only
// while it runs.
func register(f any) C.uintptr_t {
	functions.mu.Lock()
	defer functions.mu.Unlock()
	if n := len(functions.free); n > 0 {
		id := functions.free[n-1]
		functions.free = functions.free[:n-1]
		functions.byID[id] = f
		return id
	}
	if functions.byID == nil {
		functions.byID = make([]any, 1)
	}
	functions.byID = append(functions.byID, f)
	return C.uintptr_t(len(functions.byID) - 1)
}

func function(id C.uintptr_t) any {
	functions.mu.Lock()
	defer functions.mu.Unlock()
	return functions.byID[id]
}

// unregister ends the use of an id.
func unregister(id C.uintptr_t) {
	functions.mu.Lock()
	defer functions.mu.Unlock()
	functions.byID[id] = nil
	functions.free = append(functions.free, id)
}

// releaseFunctions forgets the functions that MLX has dropped.
func releaseFunctions() {
	if atomic.LoadInt32((*int32)(&C.mlxg_releasable)) == 0 {
		return
	}
	var ids [16]C.uintptr_t
	for n := len(ids); n == len(ids); {
		if n = int(C.mlxg_take_released(&ids[0], C.size_t(len(ids)))); n == 0 {
			return
		}
		for _, id := range ids[:n] {
			if pin, ok := function(id).(*runtime.Pinner); ok {
				pin.Unpin()
			}
			unregister(id)
		}
	}
}
