package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
)

// VJP runs f on the primals and returns its outputs and the vector-Jacobian products: for every primal, the sum over
// the outputs of cotangent·∂output/∂primal, in the primal's shape and dtype. Products for integer and boolean primals
// have no meaning. There is one cotangent per output, of its shape and dtype.
//
// f runs before VJP returns, on the calling goroutine. VJP returns errors of f; a panic becomes a *PanicError.
func VJP(f Func, primals, cotangents []*Array) (outputs, vjps []*Array, err error) {
	const op = "VJP"
	p, c, err := acquireBoth(op, f, primals, cotangents)
	if err != nil {
		return nil, nil, err
	}
	defer p.release()
	defer c.release()
	id := register(countingGradient(f))
	defer unregister(id)
	return split(lockedCall(op, slices.Concat(primals, cotangents), id, func(id C.uintptr_t) C.mlxg_results {
		return C.mlxg_vjp(id, p.ptr(), p.n(), c.ptr(), c.n())
	}))
}

var errNoFunction = errors.New("the function is nil")

// acquireBoth holds the two lists of arrays of a transform of f, or none on error.
func acquireBoth(op string, f Func, primals, others []*Array) (p, o handles, err error) {
	if f == nil {
		return p, o, opError(op, errNoFunction)
	}
	if p, err = acquireAll(op, primals); err != nil {
		return p, o, err
	}
	if o, err = acquireAll(op, others); err != nil {
		p.release()
	}
	return p, o, err
}

// ValueAndGrad returns a function that computes f's outputs and the gradient of the first output, which must be a
// scalar. The gradient is taken with respect to the arguments argnums, in that order, or to argument 0 if none are
// named. An argument or a first output of an integer or boolean dtype is an error.
//
// The returned function runs f before it returns, on the calling goroutine. Several goroutines may use it, as may other
// transforms.
func ValueAndGrad(f Func, argnums ...int) func(args []*Array) (values, grads []*Array, err error) {
	return valueAndGrad("ValueAndGrad", f, argnums)
}

func valueAndGrad(op string, f Func, argnums []int) func(args []*Array) (values, grads []*Array, err error) {
	if len(argnums) == 0 {
		argnums = []int{0}
	}
	argnums = slices.Clone(argnums)
	// MLX takes a set and returns gradients in ascending order.
	ascending := slices.Sorted(slices.Values(argnums))
	nums := cShape(ascending)
	// places holds the position of each requested gradient in that order.
	places := make([]int, len(argnums))
	for i, n := range argnums {
		places[i] = slices.Index(ascending, n)
	}
	inOrder := slices.IsSorted(argnums)
	twice := len(slices.Compact(slices.Clone(ascending))) != len(argnums)
	run := countingGradient(requireScalar(f))
	return func(args []*Array) (values, grads []*Array, err error) {
		switch {
		case f == nil:
			return nil, nil, opError(op, errNoFunction)
		case twice:
			return nil, nil, opError(op, fmt.Errorf("argnums %v name an argument twice", argnums))
		case ascending[0] < 0 || ascending[len(ascending)-1] >= len(args):
			return nil, nil, opError(op, fmt.Errorf("there are %d arguments, numbered from 0, but argnums are %v",
				len(args), argnums))
		}
		for _, n := range argnums {
			if d := args[n].DType(); d.exact() {
				return nil, nil, opError(op, fmt.Errorf("argument %d is %v, which has no gradient: remove it from "+
					"argnums", n, d), args...)
			}
		}
		h, err := acquireAll(op, args)
		if err != nil {
			return nil, nil, err
		}
		defer h.release()
		call := gradCall{register(run), nums, h}
		defer unregister(call.id)
		values, sorted, err := split(lockedCall(op, args, call, gradCall.run))
		if err != nil {
			return nil, nil, err
		}
		if inOrder {
			return values, sorted, nil
		}
		grads = make([]*Array, len(places))
		for i, place := range places {
			grads[i] = sorted[place]
		}
		return values, grads, nil
	}
}

// Grad returns a function that computes the gradient of f's first output like ValueAndGrad, without the values.
func Grad(f Func, argnums ...int) func(args []*Array) (grads []*Array, err error) {
	both := valueAndGrad("Grad", f, argnums)
	return func(args []*Array) ([]*Array, error) {
		_, grads, err := both(args)
		return grads, err
	}
}

// gradCall is one call of a function returned by ValueAndGrad.
type gradCall struct {
	id   C.uintptr_t
	nums []C.int
	args handles
}

func (c gradCall) run() C.mlxg_results {
	return C.mlxg_value_and_grad(c.id, &c.nums[0], C.size_t(len(c.nums)), c.args.ptr(), c.args.n())
}

// requireOutputs returns f with an error for an empty list of results: MLX reads the first result unchecked.
func requireOutputs(f Func) Func {
	return func(args []*Array) []*Array {
		results := f(args)
		if len(results) == 0 {
			return invalidArrays(1, errors.New("the function returned no arrays"))
		}
		return results
	}
}

// requireScalar returns f with an error for a first result that is not a differentiable scalar.
func requireScalar(f Func) Func {
	f = requireOutputs(f)
	return func(args []*Array) []*Array {
		results := f(args)
		const first = "the function's first result"
		switch r := results[0]; {
		case r.NDim() > 0:
			return invalidArrays(1, opError(first, errors.New("it must be a scalar, of shape (): take its Sum or Mean"),
				r))
		case r.DType().exact():
			return invalidArrays(1, opError(first, errors.New("it has no gradient: return a floating-point number"), r))
		}
		return results
	}
}

// gradientDepth counts the running functions whose gradient is being taken. The graph lock guards it; the thread of
// such a function holds the lock.
var gradientDepth int

// countingGradient returns f, counted in gradientDepth while it runs.
func countingGradient(f Func) Func {
	return func(args []*Array) []*Array {
		gradientDepth++
		defer func() { gradientDepth-- }() // also after a panic or a Goexit
		return f(args)
	}
}

// Differentiating reports whether the caller runs inside a function whose gradient is being taken by VJP or
// ValueAndGrad, or recomputed by Checkpoint. An operation may then prepare its gradient during the forward pass. It is
// false in a VJPFunc, unless the gradient of the VJPFunc is being taken, and on other goroutines.
//
// It is for packages that build operations.
func Differentiating() bool { return currentGradientDepth() > 0 }

// currentGradientDepth returns gradientDepth for the functions that call the caller, and 0 on other goroutines.
func currentGradientDepth() int {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if !insideCallback() {
		return 0
	}
	return gradientDepth
}

// split splits the results of a call that returns two lists.
func split(results []*Array, n int, err error) (first, second []*Array, _ error) {
	return results[:n:n], results[n:], err
}

// recordingCount returns f with the number of its results recorded in outputs, so that a failed call can return as many
// invalid arrays.
func recordingCount(f Func, outputs *atomic.Int64) Func {
	f = requireOutputs(f)
	return func(args []*Array) []*Array {
		results := f(args)
		outputs.Store(int64(len(results)))
		return results
	}
}

// callClosure makes a call of MLX that runs Go functions. On an error it returns invalid arrays, as many as `outputs`
// recorded, or one.
func callClosure(op string, args []*Array, outputs *atomic.Int64,
	call func(handles) C.mlxg_results,
) (results []*Array) {
	h, err := acquireAll(op, args)
	if err == nil {
		defer h.release()
		results, _, err = lockedCall(op, args, h, call)
	}
	if err != nil {
		return invalidArrays(max(int(outputs.Load()), 1), err)
	}
	return results
}
