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
		same := func(args []*Array) []*Array { return tape.run(f, args) }
		// MLX then takes the gradients of all arguments, including ids and keys, which have none.
		again := func(args []*Array) []*Array {
			args = slices.Clone(args)
			for i, a := range args {
				if a.DType().exact() {
					args[i] = a.StopGradient()
				}
			}
			return same(args)
		}
		return callClosure(op, args, &outputs, func(h handles) C.mlxg_results {
			return C.mlxg_checkpoint(register(checkpointFunc(recordingCount(same, &outputs))),
				register(checkpointFunc(countingGradient(withOutputs(again)))), h.ptr(), h.n())
		})
	}
}
