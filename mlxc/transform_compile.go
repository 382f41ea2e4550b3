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
	err       error // error of Compile
	cleanup   runtime.Cleanup
	closed    atomic.Bool
	// ctx is MLX's object. Only jobs on the compiler's thread use it, so a call and the release never run concurrently.
	ctx unsafe.Pointer
}

// Compile returns a compiled form of f. f runs at the first call with new shapes, dtypes or stream, on arrays without
// values and on another goroutine. Later calls do not run f, so its side effects happen only while it is traced. The
// traces of the 64 most recently used signatures are kept. A function that receives ever new shapes is traced at every
// call: do not compile it. For a larger number of recurring shapes, use CompileShapeless.
//
// On a CPU stream, MLX builds fused kernels with the system's C++ compiler at their first evaluation: about half a
// second per kernel, during which other goroutines wait. MLX keeps the resulting libraries among the system's temporary
// files and loads them in later runs. It does not lock them: if two processes need the same new kernel at the same
// time, or a process ended while building one, an evaluation fails with "file too short". Give concurrent processes
// separate TMPDIR folders, and remove the folder mlx there after an interrupted build. Nothing is fused on CPU streams
// if another user owns the folder mlx, if others may write to it, or if g++ 13 or later would compile MLX's wheel,
// whose headers it rejects. A log/slog warning then gives the reason. The first call decides this for the process.
//
// Without a C++ compiler nothing is compiled on CPU streams; SetCompileMode(CompileNoFuse) needs no compiler. An
// uncompiled f runs at every call, in its own scope (see WithScope): arrays that it makes are freed when it
// returns, except its results and arrays on which it calls Keep.
//
// Any goroutine may call the result. MLX's cache of compiled functions belongs to an OS thread, so all calls run on one
// thread owned by this package, and all goroutines share one trace.
//
// A *Compiled is freed when it becomes unreachable, or by Close.
func Compile(f Func) *Compiled { return newCompiled(f, false) }

// CompileShapeless is Compile with one trace for inputs of all shapes with the same number of axes. The graph that f
// builds must not depend on the shapes. To check this, f runs once more at the first call with each list of shapes.
// If the graph differs, the call returns an error that names an operation. Later calls with these shapes do not run f.
// Unlike Compile, the number of different shapes is not limited, and each takes a few bytes instead of a trace.
//
// Elementwise operations, reductions, Softmax, norms, MatMul, Transpose and Concatenate do not depend on shapes, unless
// an array is empty. Slices, Pad, Reshape to fixed sizes, causal attention, constants computed from shapes, custom
// kernels and custom gradients do.
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
	// f often refers to c, for example a model that holds its compiled step. The registry must not hold c strongly, or
	// c would never become unreachable. Call keeps c alive.
	w := weak.Make(c)
	f = func(args []*Array) []*Array { return w.Value().f(args) }
	c.ctx = C.mlxg_compile_new(register(compileFunc(f)), C.bool(shapeless))
	c.cleanup = runtime.AddCleanup(c, freeCompiled, c.ctx)
	return c
}

func freeCompiled(ctx unsafe.Pointer) {
	// A cleanup must not wait for a long evaluation.
	go compiler.do(nil, func() { C.mlxg_compiled_free(ctx) })
}

var errClosed = &Error{Op: "Compiled.Call", Err: errors.New("the compiled function was closed")}

// Close frees the compiled function. Running calls finish; later calls fail.
func (c *Compiled) Close() {
	if c.err == nil && !c.closed.Swap(true) {
		c.cleanup.Stop()
		freeCompiled(c.ctx)
	}
}

// Call runs the compiled function. Inside another transform, or inside WithPlaceholderGPU, it runs the original
// function, so that the transform sees the individual operations.
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
	defer func() { err = withCaller(err) }() // the compiler's goroutine lacks the caller's stack
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
		r.scope = scope // the caller's scope owns the results
		results, err = wrapAll(op, r, args...)
		err = c.explain(takeCallbackError(err))
	}); !alive {
		// The function called runtime.Goexit, which is meant for the caller's goroutine.
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
	// Pass a copy, as MLX does: f may write to its list.
	results = c.f(slices.Clone(args))
	for _, r := range results {
		if err := r.Err(); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// explain adds advice to the error of a function that needs shapes.
func (c *Compiled) explain(err error) error {
	e, ok := err.(*Error) //nolint:errorlint // wrapAll does not wrap it
	if !ok || !c.shapeless {
		return err
	}
	advice := ""
	switch text := e.Error(); {
	case strings.Contains(text, "output shapes"):
		advice = "it needs the shapes of its operands when it is traced: use Compile"
	case strings.Contains(text, "depends on the shapes"):
		advice = "use Compile"
	default:
		return err
	}
	hinted := *e
	hinted.Err = fmt.Errorf("%w (%s)", e.Err, advice)
	return &hinted
}
