package mlxc

// #include "mlxg.h"
import "C"

import (
	"slices"
	"sync/atomic"
)

// Checkpoint returns a function with the values and gradients of f that saves only f's arguments for the gradient, and
// runs f again in the backward pass. It trades time for memory. Random draws without a key are the same in both runs.
// Arrays that f makes are freed when it returns, except its results and arrays on which it calls Keep.
//
// If the call fails, the function returns invalid arrays that carry the error: as many as f returned before, or one.
func Checkpoint(f Func) Func {
	const op = "Checkpoint"
	var outputs atomic.Int64
	return func(args []*Array) []*Array {
		if f == nil {
			return invalidArrays(1, opError(op, errNoFunction))
		}
		var tape seedTape
		withTape := func(args []*Array) []*Array { return tape.run(f, args) }
		// In the backward pass MLX takes the gradients of all arguments, also of integer ids and keys, which have none.
		recompute := func(args []*Array) []*Array {
			args = slices.Clone(args)
			for i, a := range args {
				if a.DType().exact() {
					args[i] = a.StopGradient()
				}
			}
			return withTape(args)
		}
		return callClosure(op, args, &outputs, func(h handles) C.mlxg_results {
			return C.mlxg_checkpoint(register(checkpointFunc(recordingCount(withTape, &outputs))),
				register(checkpointFunc(countingGradient(requireOutputs(recompute)))), h.ptr(), h.n())
		})
	}
}
