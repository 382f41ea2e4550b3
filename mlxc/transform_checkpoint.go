package mlxc

// #include "mlxg.h"
import "C"

import (
	"slices"
	"sync/atomic"
)

// Checkpoint returns a function with the values and gradients of f that keeps
// only f's arguments for the gradient, and computes f again when it is needed:
// memory for time. What f draws without a key is the same then. Arrays that f makes are
// freed when it returns, but for those that it Keeps.
//
// If the call fails, the function returns invalid arrays that carry the error: as
// many as f gave, or one if f never gave any.
func Checkpoint(f Func) Func {
	const op = "Checkpoint"
	var outputs atomic.Int64
	return func(args []*Array) []*Array {
		if f == nil {
			return invalidArrays(1, opError(op, errNoFunction))
		}
		var tape seedTape
		same := func(args []*Array) []*Array { return tape.run(f, args) }
		// MLX takes the gradients of all arguments then, also of ids and keys, which have none.
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
			return C.mlxg_checkpoint(register(checkpointFunc(recordingCount(same, &outputs))), register(checkpointFunc(countingGradient(withOutputs(again)))), h.ptr(), h.n())
		})
	}
}
