package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// Unmapped is the axis of an argument that all elements share, or of an output that is the same for all of them, in the
// lists of Vmap.
const Unmapped = math.MinInt32

// Vmap returns a function that computes f for every element along an axis of its arguments at once. f is written for
// one element. It runs once, on placeholders without that axis and without values; each of its operations becomes one
// operation on all elements.
//
// inAxes holds, for every argument, the axis to map over, which the placeholder lacks. outAxes holds, for every output,
// the position of the mapped axis in the result. Negative axes count from the end; for an output they count the new
// axis. Unmapped in inAxes passes the argument whole. Unmapped in outAxes returns the output without the axis, and is
// an error if the output depends on a mapped argument. An output that does not depend on a mapped argument is repeated
// along its axis in outAxes. A nil list stands for zeros.
//
// At least one argument must be mapped. All mapped axes must have the same size, at least 1. An operation without a
// batching rule, such as a Metal kernel or a host function, is an error. Functions made by CustomVJP and Checkpoint
// keep their gradients. If the call fails, the function returns invalid arrays that carry the error: as many as outAxes
// has entries. If outAxes is nil, they are as many as f returned before, or one.
func Vmap(f Func, inAxes, outAxes []int) Func {
	const op = "Vmap"
	inAxes, outAxes = slices.Clone(inAxes), slices.Clone(outAxes)
	var outputs atomic.Int64
	return func(args []*Array) []*Array {
		in, err := mappedAxes(op, args, inAxes)
		out, outErr := cInts(outAxes)
		switch {
		case f == nil:
			err = opError(op, errNoFunction)
		case err == nil && outErr != nil:
			err = opError(op, outErr, args...)
		}
		if err != nil {
			return invalidArrays(max(len(outAxes), 1), err)
		}
		id := register(recordingCount(f, &outputs))
		defer unregister(id)
		results := callClosure(op, args, &outputs, func(h handles) C.mlxg_results {
			return C.mlxg_vmap(id, h.ptr(), &in[0], h.n(), &out[0], C.size_t(len(outAxes)))
		})
		if n := len(outAxes); n > 0 && len(results) != n { // f failed, and had another number of outputs before
			return invalidArrays(n, results[0].Err())
		}
		return results
	}
}

// mappedAxes returns the input axes for C: non-negative, or -1 for an unmapped argument.
func mappedAxes(op string, args []*Array, axes []int) ([]C.int, error) {
	if axes == nil {
		axes = make([]int, len(args))
	}
	fail := func(format string, values ...any) ([]C.int, error) {
		return nil, opError(op, fmt.Errorf(format, values...), args...)
	}
	if len(axes) != len(args) {
		return fail("there are %d arguments, but %d input axes", len(args), len(axes))
	}
	mapped := make([]C.int, len(axes))
	first := -1 // the first mapped argument
	for i, a := range args {
		if err := a.Err(); err != nil {
			return nil, operandError(op, err, i, args...)
		}
		if axes[i] == Unmapped {
			mapped[i] = -1
			continue
		}
		axis, err := a.axis(axes[i])
		if err != nil {
			return fail("argument %d: %w", i, err)
		}
		mapped[i] = C.int(axis)
		if first < 0 {
			first = i
		}
		if size, want := a.Dim(axis), args[first].Dim(int(mapped[first])); size != want {
			return fail("the mapped axis of argument %d has size %d, but the mapped axis of argument %d has size %d",
				first, want, i, size)
		} else if size == 0 {
			return fail("the mapped axis of argument %d has size 0: it must be at least 1", i)
		}
	}
	if first < 0 {
		return fail("no argument is mapped: at least one must be")
	}
	return mapped, nil
}
