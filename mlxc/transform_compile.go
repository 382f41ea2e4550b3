package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"
	"weak"
)

// Compiled is a function that MLX has simplified and fused.
type Compiled struct {
	f         Func
	shapeless bool
	err       error // of Compile
	cleanup   runtime.Cleanup
	closed    atomic.Bool
	// ctx is what MLX holds. Only jobs on the compiler's thread use it, so that a call
	// and the freeing of it cannot meet.
	ctx unsafe.Pointer
}

// Compile makes a compiled form of f. f runs at the first call with new shapes,
// dtypes or stream, on arrays without values, and not at later ones: what it does
// besides computing its results happens at those times only, and on another
// goroutine. What was compiled for the 64 signatures that were used last is kept. A
// function for inputs of ever new shapes is traced ever anew: it wants
// CompileShapeless, or no compilation.
//
// For a CPU stream, MLX has the system's C++ compiler build what it fuses, when it is
// first evaluated: about half a second for each part, during which other goroutines wait.
// The results are kept among the system's temporary files, for later runs of the program
// too. MLX does not guard them: where two processes want the same part for the first time,
// or one was ended as it was built, an evaluation fails with "file too short". So give processes
// that run side by side a TMPDIR each, and remove the folder mlx there after the latter. MLX loads
// libraries from that folder. If another user owns it, or others may write to it, nothing is fused
// on CPU streams, and a warning of log/slog says why; the first call decides it for the process.
// Without a compiler nothing is compiled; SetCompileMode(CompileNoFuse) does without one. Where
// nothing is compiled, f runs at every call, in a scope of its own (see WithScope): the arrays that
// it makes are freed when it returns, other than its results and what Keep took out.
//
// Any goroutine may call the result. MLX's cache of compiled functions belongs to
// an OS thread, so all calls run on one thread that this package owns, and one
// trace serves all goroutines.
//
// A *Compiled frees what it holds when it becomes unreachable, or at Close.
func Compile(f Func) *Compiled { return newCompiled(f, false) }

// CompileShapeless is like Compile, with one trace for inputs of all shapes.
// Functions whose operations need their shapes when they are built, custom kernels
// and gradients among them, then fail with an error.
func CompileShapeless(f Func) *Compiled { return newCompiled(f, true) }

func newCompiled(f Func, shapeless bool) *Compiled {
	c := &Compiled{f: f, shapeless: shapeless}
	err := Check()
	if err == nil && f == nil {
		err = errNoFunction
	}
	if err != nil {
		c.err = opError("Compile", err)
		return c
	}
	// f often reaches c (a model that holds its own compiled step): the registry must
	// not, or c would never become unreachable. Call keeps c alive.
	w := weak.Make(c)
	f = func(args []*Array) []*Array { return w.Value().f(args) }
	c.ctx = C.mlxg_compile_new(register(compileFunc(f)), C.bool(shapeless))
	c.cleanup = runtime.AddCleanup(c, freeCompiled, c.ctx)
	return c
}

func freeCompiled(ctx unsafe.Pointer) {
	// The collector's own goroutine must not wait for a long evaluation.
	go compiler.do(nil, func() { C.mlxg_compiled_free(ctx) })
}

var errClosed = &Error{Op: "Compiled.Call", Err: errors.New("the compiled function was closed")}

// Close frees the compiled function. Calls that have begun are finished; later
// ones fail.
func (c *Compiled) Close() {
	if c.err == nil && !c.closed.Swap(true) {
		c.cleanup.Stop()
		freeCompiled(c.ctx)
	}
}

// Call runs the compiled function. Inside another transform, in a function
// that MLX calls, or inside WithPlaceholderGPU it runs the original function
// instead: whoever is at work there sees its operations one by one.
func (c *Compiled) Call(args ...*Array) (results []*Array, err error) {
	const op = "Compiled.Call"
	if c.err != nil {
		return nil, c.err
	}
	h, err := acquireAll(op, args)
	if err != nil {
		return nil, err
	}
	defer h.release()
	defer runtime.KeepAlive(c)
	defer func() { err = withCaller(err) }() // the compiler's goroutine does not have the caller's stack
	runtime.LockOSThread()
	stream, scope := C.mlxg_current_stream(), C.mlxg_current_scope()
	onGPU := C.mlxg_current_device() == 1
	inline := insideCallback() || stream == C.mlxg_placeholder_gpu()
	runtime.UnlockOSThread()
	if inline {
		return c.callInline(args)
	}
	if !onGPU {
		decideFusing()
	}
	if alive := compiler.do(stream, func() {
		if c.closed.Load() {
			err = errClosed
			return
		}
		r := C.mlxg_compiled_call(c.ctx, h.ptr(), h.n())
		r.scope = scope // as if the caller's thread had made them
		results, err = wrapAll(op, r, args...)
		err = c.explain(takeCallbackError(err))
	}); !alive {
		// The function ended the goroutine it ran on; the caller's is meant.
		runtime.Goexit()
	}
	return results, err
}

func (c *Compiled) callInline(args []*Array) (results []*Array, err error) {
	if c.closed.Load() {
		return nil, errClosed
	}
	defer func() {
		if v := recover(); v != nil {
			results, err = nil, newPanicError(v)
		}
	}()
	// A list of its own, as MLX would give it: f may put other arrays into it.
	results = c.f(slices.Clone(args))
	for _, r := range results {
		if err := r.Err(); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// explain says what to do where MLX only names the primitive that it cannot infer
// the shapes of.
func (c *Compiled) explain(err error) error {
	e, ok := err.(*Error) //nolint:errorlint // wrapAll's
	if !ok || !c.shapeless || !strings.Contains(e.Error(), "output shapes") {
		return err
	}
	hinted := *e
	hinted.Err = fmt.Errorf("%w (a function with a gradient of its own or a custom kernel needs its shapes: compile it with Compile)", e.Err)
	return &hinted
}
