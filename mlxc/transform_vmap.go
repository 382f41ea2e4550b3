package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// Unmapped stands for an axis in Vmap's lists: an argument that all elements share, or
// an output that is the same for all of them.
const Unmapped = math.MinInt32

// Vmap returns a function that computes f for every element along an axis of its
// arguments, all at once: f is written for one element and runs once, on stand-ins
// without that axis and without values, and each of its operations becomes one over
// all elements.
//
// inAxes has, for every argument, the axis to map over; it is what the stand-in lacks.
// outAxes has, for every output, the place of that axis in the result. Negative axes
// count from the end, for an output with the new axis there. Unmapped as an input axis
// passes the argument whole; as an output axis it gives the output without the axis,
// which is an error if it depends on a mapped argument. An output with an axis that
// does not depend on one is repeated along it. A nil list stands for zeros.
//
// At least one argument is mapped; all mapped axes have the same size, 1 at least. An
// operation that cannot be vectorised is an error: Metal kernels and host functions are
// such. Functions made by CustomVJP and Checkpoint keep their gradients. If the call
// fails, the function returns invalid arrays that carry the error: as many as outAxes
// names, else as f gave, or one if f never gave any.
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
		if n := len(outAxes); n > 0 && len(results) != n { // f failed, and gave another number before
			return invalidArrays(n, results[0].Err())
		}
		return results
	}
}

// mappedAxes gives the axes as C takes them, counted from the front and −1 where there
// is none.
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
	first := -1 // of the mapped arguments
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
			return fail("the mapped axis of argument %d has the size %d, that of argument %d has %d", first, want, i, size)
		} else if size == 0 {
			return fail("the mapped axis of argument %d has no elements", i)
		}
	}
	if first < 0 {
		return fail("no argument is mapped")
	}
	return mapped, nil
}
