package mlxc

// #include "mlxg.h"
import "C"

// After returns a as an array that is computed after the others. It orders parts of a graph that data dependencies
// leave unordered: of two parts that need much memory, the second can wait until the first has released its memory. Its
// gradient is the gradient of a.
//
// After orders the submission of work to devices, not its completion; see AfterCompletion.
//
// It is for packages that build operations.
func (a *Array) After(others ...*Array) *Array { return a.after("After", others, false) }

// AfterCompletion is After for a chain of parts that reuse each other's memory: each call takes a result of the
// previous call as a. If a is such a result, evaluating the new array blocks until the device has finished all arrays
// that a was ordered after. So at most two parts of the chain hold memory at a time: one runs, and one is being queued.
// AsyncEval, and other goroutines that build or evaluate graphs, block meanwhile.
//
// After alone does not bound the memory on a CPU or a CUDA device: a queued part already owns the memory of its
// results, and the memory of a part is released only when its work is complete. On Metal, and in an exported function,
// AfterCompletion is After.
//
// It is for packages that build operations.
func (a *Array) AfterCompletion(others ...*Array) *Array {
	return a.after("AfterCompletion", others, true)
}

func (a *Array) after(op string, others []*Array, done bool) *Array {
	ctx, err := a.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, a))
	}
	defer a.release()
	h, err := acquireAll(op, others)
	if err != nil {
		return invalid(err)
	}
	defer h.release()
	var result *Array
	locked(func() { result = wrap(op, C.mlxg_depends(ctx, h.ptr(), h.n(), C.bool(done)), a) })
	return result
}
