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

// Func is a function of arrays, the argument and result of transforms. It must be pure: MLX may call it once, several
// times, or on arrays without values. Arrays that it captures count as constants and have no gradient.
//
// While MLX runs a Func, the calling goroutine holds the graph lock. The function must not wait for another goroutine
// that uses this package: both would block. If goroutines wait for the lock for more than five seconds meanwhile, a
// log/slog warning names them and the function.
type Func = func(args []*Array) []*Array

// AsFunc returns a Func for a function that returns an error, such as the result of Grad. If f returns an error, the
// Func returns one invalid array that carries it. This puts gradients under other transforms: Vmap(AsFunc(Grad(loss)),
// …) computes per-sample gradients.
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

// VJPFunc computes a vector-Jacobian product. It receives a function's arguments, the cotangents of its outputs, and
// the outputs. It returns one cotangent per argument, of the argument's shape and dtype, and none may be nil.
type VJPFunc = func(primals, cotangents, outputs []*Array) []*Array

// JVPFunc computes a Jacobian-vector product. It receives a function's arguments and one tangent per argument, of the
// argument's shape and dtype. It returns one tangent per output, of the output's shape and dtype. A constant argument
// has a tangent of zeros.
type JVPFunc = func(primals, tangents []*Array) []*Array

// VmapFunc computes a function for a whole batch. Arguments with mapped set have the batch along their first axis; the
// others are shared by all elements. Every result has the batch along its first axis.
type VmapFunc = func(args []*Array, mapped []bool) []*Array

// callbackError is the error of the last Go function that failed under MLX; C++ receives only a failure status. The
// graph lock guards it.
var callbackError error

// takeCallbackError replaces MLX's message for a failed closure by the error of the Go function.
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

// checkpointFunc is a function passed to Checkpoint.
type checkpointFunc Func

// compileFunc is a function passed to Compile.
type compileFunc Func

//export mlxgCallClosure
func mlxgCallClosure(id C.uintptr_t, in *C.mlxg_members, out unsafe.Pointer) (status C.int) {
	switch f := function(id).(type) {
	case checkpointFunc:
		return guardedInScope(out, func() []*Array { return f(arraysOf(in)) }, in)
	case compileFunc:
		if in.n == 0 || !bool(C.mlxg_traced(handleWord(*in.handles))) {
			// Compilation is off, or f has no arguments. f runs on the compiler's thread, and the caller's scope
			// belongs to another thread: open one here.
			return guardedInScope(out, func() []*Array { return f(arraysOf(in)) }, in)
		}
		status = guarded(out, func() []*Array { return f(arraysOf(in)) })
	case Func:
		status = guarded(out, func() []*Array { return f(arraysOf(in)) })
	}
	return status
}

// guardedInScope is guarded inside a new scope, for functions that must not leave values behind: checkpointed
// functions, which run again later, and custom rules. The arrays that f makes, and its argument handles, are freed once
// MLX has its results. Only then can MLX reuse their memory.
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

// guarded runs a Go function for MLX and passes its results to out. It returns 1 if the function failed.
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
		// f neither returned nor panicked: this is runtime.Goexit. It cannot be stopped, and it skips the C++ frames
		// below.
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

// arraysOf returns the arguments of a Go function as arrays, which own the handles.
func arraysOf(m *C.mlxg_members) []*Array {
	return newArrays(unsafe.Slice(m.handles, m.n), uintptr(m.scope))
}

// invalidArrays returns n invalid arrays that carry err, as the results of a failed function.
func invalidArrays(n int, err error) []*Array {
	results := make([]*Array, n)
	for i := range results {
		results[i] = invalid(err)
	}
	return results
}

// errCount is the error of a function that returned or received a wrong number of arrays.
func errCount(what string, got, want int) error {
	return fmt.Errorf("%s: %d arrays, want %d", what, got, want)
}

// functions holds the Go functions that C refers to by an id, and the pins of memory that C reads.
var functions struct {
	mu   sync.Mutex
	byID []any         // nil for an id that is not in use; id 0 is never used
	free []C.uintptr_t // unused ids
}

// register returns an id for f. If C uses the id only during one call, the caller calls unregister after it. Otherwise
// releaseFunctions drops the id when MLX has destroyed every closure made with it.
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

// function returns the function registered under id.
func function(id C.uintptr_t) any {
	functions.mu.Lock()
	defer functions.mu.Unlock()
	return functions.byID[id]
}

// unregister drops an id, which may then be used again.
func unregister(id C.uintptr_t) {
	functions.mu.Lock()
	defer functions.mu.Unlock()
	functions.byID[id] = nil
	functions.free = append(functions.free, id)
}

// releaseFunctions drops the functions whose closures MLX has destroyed.
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
