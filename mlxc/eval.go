package mlxc

// #include "mlxg.h"
import "C"

import "fmt"

// handles holds the handles of several arrays for one call.
type handles struct {
	arrays []*Array
	ctx    []C.uintptr_t
}

// acquireAll holds every array, or none and says which one is invalid.
func acquireAll(op string, arrays []*Array) (handles, error) {
	return acquireIn(make([]C.uintptr_t, 0, len(arrays)+1), op, arrays)
}

// acquireIn does so in place of its own, which is not empty, as far as it goes.
func acquireIn(place []C.uintptr_t, op string, arrays []*Array) (handles, error) {
	if err := Check(); err != nil {
		return handles{}, opError(op, err)
	}
	h := handles{arrays: arrays, ctx: place[:0]}
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

// operandError passes on the error that operand i brought with it, and says which
// operand it is where the error does not name an operation.
func operandError(op string, err error, i int, operands ...*Array) error {
	if _, ok := err.(*Error); ok { //nolint:errorlint // only an unwrapped one names its operation
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

// ptr is the address that C reads; never of an empty slice.
func (h handles) ptr() *C.uintptr_t { return &h.ctx[:cap(h.ctx)][0] }

func (h handles) n() C.size_t { return C.size_t(len(h.arrays)) }

// Eval computes the arrays and waits until they are there. While it waits, other
// goroutines build and evaluate; their work on the same stream queues up behind.
// It cannot be cancelled. It returns the error of the first array that is invalid or cannot
// be computed. An array that could not be computed, and every array that depends on it, returns the
// error at each later use. Errors of other goroutines' evaluations do not reach the caller.
func Eval(arrays ...*Array) error {
	h, err := acquireAll("Eval", arrays)
	if err != nil {
		return err
	}
	defer h.release()
	// Not through locked: mlxg_eval gives the lock up while it waits.
	var e *C.char
	onCleanThread(func() { e = C.mlxg_eval(h.ptr(), h.n()) })
	if e != nil {
		return opError("Eval", takeText(e), arrays...)
	}
	freeQueue.flush(false)
	paceGC()
	return nil
}

// AsyncEval starts to compute the arrays and returns. Reading one waits for it, and returns its
// error if it could not be computed; Synchronize returns errors that no read has returned. Where
// much work is under way, MLX waits for some of it first.
func AsyncEval(arrays ...*Array) error {
	h, err := acquireAll("AsyncEval", arrays)
	if err != nil {
		return err
	}
	defer h.release()
	var e *C.char
	onCleanThread(func() { e = C.mlxg_async_eval(h.ptr(), h.n()) })
	if e != nil {
		return opError("AsyncEval", takeText(e), arrays...)
	}
	freeQueue.flush(false)
	paceGC()
	return nil
}
