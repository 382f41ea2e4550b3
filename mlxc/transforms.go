package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"slices"
)

// VJP runs f on the primals and returns its outputs and the vector-Jacobian
// products: for every primal, the sum over the outputs of cotangent·∂output/∂primal,
// in the primal's shape and dtype. There is one cotangent for every output, of its
// shape.
//
// f runs before VJP returns, on the calling goroutine. An error in f, a panic too
// (as a *PanicError), is returned here.
func VJP(f Func, primals, cotangents []*Array) (outputs, vjps []*Array, err error) {
	const op = "VJP"
	if f == nil {
		return nil, nil, &Error{Op: op, Err: errors.New("the function is nil")}
	}
	p, err := acquireAll(op, primals)
	if err != nil {
		return nil, nil, err
	}
	defer p.release()
	c, err := acquireAll(op, cotangents)
	if err != nil {
		return nil, nil, err
	}
	defer c.release()
	locked(func() {
		var n C.size_t
		r := C.mlxg_vjp(register(f), p.ptr(), p.n(), c.ptr(), c.n(), &n)
		outputs, vjps, err = split(op, r, n, primals)
	})
	return outputs, vjps, err
}

// ValueAndGrad returns a function that computes f's outputs and the gradient of
// the first of them, which must be a scalar, with respect to the arguments
// argnums, or to the first argument if none are named.
//
// The returned function runs f before it returns, on the calling goroutine. It may
// be used by several goroutines, and inside other transforms.
func ValueAndGrad(f Func, argnums ...int) func(args []*Array) (values, grads []*Array, err error) {
	const op = "ValueAndGrad"
	if len(argnums) == 0 {
		argnums = []int{0}
	}
	argnums = slices.Clone(argnums)
	return func(args []*Array) (values, grads []*Array, err error) {
		if f == nil {
			return nil, nil, &Error{Op: op, Err: errors.New("the function is nil")}
		}
		for _, n := range argnums {
			if n < 0 || n >= len(args) {
				return nil, nil, &Error{Op: op, Err: fmt.Errorf("there is no argument %d among %d", n, len(args))}
			}
		}
		h, err := acquireAll(op, args)
		if err != nil {
			return nil, nil, err
		}
		defer h.release()
		nums := cInts(argnums)
		locked(func() {
			var n C.size_t
			r := C.mlxg_value_and_grad(register(f), &nums[0], C.size_t(len(argnums)), h.ptr(), h.n(), &n)
			values, grads, err = split(op, r, n, args)
		})
		return values, grads, err
	}
}

// split takes the results of a call that gives two lists.
func split(op string, r C.mlxg_results, n C.size_t, operands []*Array) (first, second []*Array, err error) {
	all, err := wrapAll(op, r, operands...)
	if err != nil {
		return nil, nil, takeCallbackError(err)
	}
	return all[:n:n], all[n:], nil
}

// CustomVJP gives f a gradient of its own: a function that computes f, and whose
// vector-Jacobian product is vjp. Where nobody asks for a gradient, vjp does not
// run.
//
// vjp must give one array for every argument, in its shape and dtype. If the call
// fails, the function returns one invalid array that carries the error.
func CustomVJP(f Func, vjp VJPFunc) Func {
	const op = "CustomVJP"
	return func(args []*Array) (results []*Array) {
		if f == nil || vjp == nil {
			return single(&Error{Op: op, Err: errors.New("a function is nil")})
		}
		checked := func(primals, cotangents, outputs []*Array) []*Array {
			grads := vjp(primals, cotangents, outputs)
			// MLX takes the list as it is and would read past its end.
			if len(grads) != len(primals) {
				return single(&Error{Op: op, Err: errCount("the vjp's results", len(grads), len(primals))})
			}
			for i, g := range grads {
				if g.Err() == nil && !slices.Equal(g.Shape(), primals[i].Shape()) {
					return single(opError(op, fmt.Errorf("the vjp's result %d has another shape than argument %d", i, i), g, primals[i]))
				}
			}
			return grads
		}
		return throughClosure(op, args, func(h handles) C.mlxg_results {
			return C.mlxg_custom_vjp(register(f), register(checked), h.ptr(), h.n())
		})
	}
}

// Checkpoint returns a function with the values and gradients of f that keeps
// only f's arguments for the gradient, and computes f again when it is needed:
// memory for time.
//
// If the call fails, the function returns one invalid array that carries the
// error.
func Checkpoint(f Func) Func {
	const op = "Checkpoint"
	return func(args []*Array) []*Array {
		if f == nil {
			return single(&Error{Op: op, Err: errors.New("the function is nil")})
		}
		return throughClosure(op, args, func(h handles) C.mlxg_results {
			return C.mlxg_checkpoint(register(f), h.ptr(), h.n())
		})
	}
}

// throughClosure makes a call of MLX that runs Go functions.
func throughClosure(op string, args []*Array, call func(handles) C.mlxg_results) (results []*Array) {
	h, err := acquireAll(op, args)
	if err != nil {
		return single(err)
	}
	defer h.release()
	locked(func() {
		results, err = wrapAll(op, call(h), args...)
		err = takeCallbackError(err)
	})
	if err != nil {
		return single(err)
	}
	return results
}
