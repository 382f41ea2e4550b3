package mlxc

// #include "mlxg.h"
import "C"

import "fmt"

// handles holds the handles of several arrays during one call.
type handles struct {
	arrays []*Array
	ctx    []C.uintptr_t
}

// acquireAll holds every array. If one is invalid, it holds none and returns an error that names the operand.
func acquireAll(op string, arrays []*Array) (handles, error) {
	return acquireIn(make([]C.uintptr_t, 0, len(arrays)+1), op, arrays)
}

// acquireIn is acquireAll with storage for the handles. The storage must have a capacity of at least 1. It is
// reallocated if it is too small.
func acquireIn(storage []C.uintptr_t, op string, arrays []*Array) (handles, error) {
	if err := Check(); err != nil {
		return handles{}, opError(op, err)
	}
	h := handles{arrays: arrays, ctx: storage[:0]}
	for i, a := range arrays {
		ctx, err := a.acquire()
		if err != nil {
			for _, b := range arrays[:i] {
				b.release()
			}
			return handles{}, operandError(op, err, i, arrays...)
		}
		h.ctx = append(h.ctx, handleWord(ctx))
	}
	return h, nil
}

// operandError passes on the error of operand i. If that error does not name an operation, operandError adds the
// operation and, if there are several operands, the operand's number, counted from 1.
func operandError(op string, err error, i int, operands ...*Array) error {
	if _, ok := err.(*Error); ok { //nolint:errorlint // a wrapped *Error still needs the operation
		return err
	}
	if len(operands) > 1 {
		err = fmt.Errorf("operand %d: %w", i+1, err)
	}
	return opError(op, err, operands...)
}

func (h handles) release() {
	for _, a := range h.arrays {
		a.release()
	}
}

// ptr returns the address of the handles for C. It is valid even if there are no handles.
func (h handles) ptr() *C.uintptr_t { return &h.ctx[:cap(h.ctx)][0] }

func (h handles) n() C.size_t { return C.size_t(len(h.arrays)) }

// Eval computes the arrays and waits for them. Other goroutines may build graphs and evaluate at the same time; work on
// the same stream runs in order. An evaluation cannot be canceled.
//
// Eval returns the error of the first array that is invalid or cannot be computed. Such an array, and every array that
// depends on it, returns the error at each later use. Errors of other goroutines' evaluations do not reach the caller.
func Eval(arrays ...*Array) error {
	h, err := acquireAll("Eval", arrays)
	if err != nil {
		return err
	}
	defer h.release()
	// mlxg_eval takes the graph lock itself, and releases it while it waits.
	var e *C.char
	onCleanThread(func() { e = C.mlxg_eval(h.ptr(), h.n()) })
	if e != nil {
		return opError("Eval", takeError(e), arrays...)
	}
	freeQueue.flush(false)
	paceGC()
	return nil
}

// AsyncEval starts to compute the arrays and returns. Reading an array waits for it and returns its error. Synchronize
// returns errors that no read has returned. If much work is queued, AsyncEval first waits for some of it.
func AsyncEval(arrays ...*Array) error {
	h, err := acquireAll("AsyncEval", arrays)
	if err != nil {
		return err
	}
	defer h.release()
	var e *C.char
	onCleanThread(func() { e = C.mlxg_async_eval(h.ptr(), h.n()) })
	if e != nil {
		return opError("AsyncEval", takeError(e), arrays...)
	}
	freeQueue.flush(false)
	paceGC()
	return nil
}
