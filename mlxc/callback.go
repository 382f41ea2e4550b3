package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// Func is a function of arrays that transforms take and give. It must be pure:
// MLX may call it once, often, or on arrays without values. Arrays that it
// captures count as constants and get no gradient.
//
// While MLX runs it, the calling goroutine holds the graph lock. So it must not wait
// for another goroutine that uses this package: neither would go on.
type Func = func(args []*Array) []*Array

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
		return &Error{Op: op.Op, Shapes: op.Shapes, DTypes: op.DTypes, Err: cause}
	}
	return cause
}

//export mlxgCallClosure
func mlxgCallClosure(id C.uintptr_t, in unsafe.Pointer, out unsafe.Pointer) C.int {
	return guarded(out, func() []*Array {
		return function(uintptr(id)).(Func)(arraysOf(in))
	})
}

//export mlxgCallCustom
func mlxgCallCustom(id C.uintptr_t, primals, cotangents, outputs, out unsafe.Pointer) C.int {
	return guarded(out, func() []*Array {
		return function(uintptr(id)).(VJPFunc)(arraysOf(primals), arraysOf(cotangents), arraysOf(outputs))
	})
}

//export mlxgCallJVP
func mlxgCallJVP(id C.uintptr_t, primals, tangents, out unsafe.Pointer) C.int {
	return guarded(out, func() []*Array {
		return function(uintptr(id)).(JVPFunc)(arraysOf(primals), arraysOf(tangents))
	})
}

//export mlxgCallVmap
func mlxgCallVmap(id C.uintptr_t, args unsafe.Pointer, axes *C.int, n C.size_t, out unsafe.Pointer) C.int {
	return guarded(out, func() []*Array {
		mapped := make([]bool, n)
		for i, axis := range unsafe.Slice(axes, n) {
			mapped[i] = axis >= 0
		}
		return function(uintptr(id)).(VmapFunc)(arraysOf(args), mapped)
	})
}

// guarded runs a Go function for MLX and writes its results to *out, the ctx of an
// mlx_vector_array that has none yet. It returns 1 if the function failed.
func guarded(out unsafe.Pointer, f func() []*Array) (status C.int) {
	status = 1
	finished := false
	defer func() {
		if finished {
			return
		}
		if v := recover(); v != nil {
			callbackError = newPanicError(v)
			return
		}
		// Neither returned nor panicked: runtime.Goexit. It cannot be stopped, and
		// the C++ frames below are about to be skipped.
		staleThreads.Add(1)
		C.mlxg_mark_stale()
	}()
	results := f()
	h, err := acquireAll("the results of a Go function", results)
	if err != nil {
		callbackError = err
		finished = true
		return 1
	}
	defer h.release()
	v := C.mlx_vector_array_new_data((*C.mlx_array)(unsafe.Pointer(h.ptr())), h.n())
	*(*unsafe.Pointer)(out) = v.ctx
	finished = true
	if v.ctx == nil {
		callbackError = errors.New("out of memory")
		return 1
	}
	return 0
}

// arraysOf makes Go arrays of the members of an mlx_vector_array.
func arraysOf(ctx unsafe.Pointer) []*Array {
	var few [16]unsafe.Pointer
	handles := few[:]
	var n C.size_t
	scope := C.mlxg_vector_members(ctx, &handles[0], C.size_t(len(handles)), &n)
	if int(n) > len(handles) {
		handles = make([]unsafe.Pointer, n)
		scope = C.mlxg_vector_members(ctx, &handles[0], n, &n)
	}
	out := make([]*Array, n)
	for i := range out {
		out[i] = newArray(handles[i], uintptr(scope))
	}
	return out
}

// failed is what stands for the n results of a function that failed.
func failed(n int, err error) []*Array {
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
