package mlxc

// #include "mlxg.h"
import "C"

// After returns a as an array that is not computed before the others are. It asks for
// an order that the graph leaves open: of two parts of a graph that need much memory,
// the second can wait until the first has given its own back. Its gradient is a's.
//
// The order is that in which devices are told to compute; see AfterCompletion.
func (a *Array) After(others ...*Array) *Array { return a.after("After", others, false) }

// AfterCompletion is After for a chain of parts that are to have each other's memory: a CPU or a CUDA
// device gives no memory back before it has come to the last that uses it, and may have been told
// much more by then. Where a is a result of AfterCompletion itself, whoever evaluates the new array waits
// until the device is done with all that a was to come after. So there are two parts of the chain
// at a time, one that the device computes and one that it is told. Other goroutines wait with it
// where they build or evaluate, and AsyncEval does. On other devices, and in a function that is
// exported, it is After.
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
