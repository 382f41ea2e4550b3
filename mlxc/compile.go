package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// CompileConfig holds the options of Compile; the zero value is the usual choice.
type CompileConfig struct {
	// Shapeless makes one trace serve inputs of all shapes. Functions whose
	// operations need their shapes when they are built, our kernels among them,
	// then fail with an error.
	Shapeless bool
}

// Compiled is a function that MLX has simplified and fused.
type Compiled struct {
	closure unsafe.Pointer
	id      uintptr
	f       Func
	config  CompileConfig
	err     error
	cleanup runtime.Cleanup
	once    sync.Once
}

// Compile makes a compiled form of f. f runs at the first call with new shapes,
// dtypes or device, on arrays without values, and not at later ones: what it does
// besides computing its results happens at those times only, and on another
// goroutine.
//
// Any goroutine may call the result. MLX's cache of compiled functions belongs to
// an OS thread, so all calls run on one thread that this package owns, and one
// trace serves all goroutines.
//
// A *Compiled frees what it holds when it becomes unreachable, or at Close.
func Compile(f Func, config ...CompileConfig) *Compiled {
	c := &Compiled{f: f}
	if len(config) > 0 {
		c.config = config[0]
	}
	switch {
	case initError != nil:
		c.err = &Error{Op: "Compile", Err: initError}
		return c
	case f == nil:
		c.err = &Error{Op: "Compile", Err: errors.New("the function is nil")}
		return c
	}
	locked(func() {
		id := register(f)
		c.id = uintptr(id)
		if e := C.mlxg_compile_new(id, C.bool(c.config.Shapeless), &c.closure); e != nil {
			c.err = &Error{Op: "Compile", Err: takeText(e)}
		}
	})
	if c.err == nil {
		c.cleanup = runtime.AddCleanup(c, freeCompiled, compiledHandle{c.closure, c.id})
	}
	return c
}

type compiledHandle struct {
	closure unsafe.Pointer
	id      uintptr
}

func freeCompiled(h compiledHandle) {
	// The cache entry is in the owned thread's cache. This may run on the
	// collector's own goroutine, which must not wait for a long evaluation.
	go compiler.do(func() { C.mlxg_compiled_free(h.closure, C.uintptr_t(h.id)) })
}

// Close frees the compiled function. Calls after it fail.
func (c *Compiled) Close() {
	c.once.Do(func() {
		if c.err == nil {
			c.cleanup.Stop()
			freeCompiled(compiledHandle{c.closure, c.id})
		}
		c.err = &Error{Op: "Compile", Err: errors.New("the compiled function was closed")}
	})
}

// Call runs the compiled function. Inside another transform, or in a function
// that MLX calls, it runs the original function instead: the transform at work
// sees its operations one by one.
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
	runtime.LockOSThread()
	nested := insideCallback()
	stream := C.mlxg_current_stream()
	scope := uintptr(C.mlxg_current_scope())
	runtime.UnlockOSThread()
	if nested {
		results = c.f(args)
		for _, r := range results {
			if err := r.Err(); err != nil {
				return nil, err
			}
		}
		return results, nil
	}
	if alive := compiler.do(func() {
		// As if the caller's thread ran it: on its stream, into its scope.
		old := C.mlxg_swap_stream(stream)
		defer C.mlxg_swap_stream(old)
		r := C.mlxg_compiled_call(c.closure, h.ptr(), h.n())
		r.scope = C.uintptr_t(scope)
		results, err = wrapAll(op, r, args...)
		err = c.explain(takeCallbackError(err))
	}); !alive {
		// The function ended the goroutine it ran on; the caller's is meant.
		runtime.Goexit()
	}
	return results, err
}

// explain says what to do where MLX only names the primitive that it cannot infer
// the shapes of.
func (c *Compiled) explain(err error) error {
	if err != nil && c.config.Shapeless && strings.Contains(err.Error(), "output shapes") {
		return fmt.Errorf("%w A function with a gradient of its own or a custom kernel cannot be compiled without shapes: compile it with shapes", err)
	}
	return err
}

// compiler is the owned thread: a goroutine locked to it, started at first use
// and again if a compiled function ended it.
var compiler worker

type worker struct {
	mu   sync.Mutex
	jobs chan job
}

type job struct {
	f    func()
	done chan bool
}

// do runs f on the owned thread under the graph lock. It returns false if f ended
// the goroutine.
func (w *worker) do(f func()) bool {
	j := job{f: f, done: make(chan bool, 1)}
	w.mu.Lock()
	if w.jobs == nil {
		w.jobs = make(chan job)
		go w.run(w.jobs)
	}
	jobs := w.jobs
	w.mu.Unlock()
	jobs <- j
	return <-j.done
}

func (w *worker) run(jobs chan job) {
	runtime.LockOSThread()
	for j := range jobs {
		if !w.one(j, jobs) {
			return
		}
	}
}

func (w *worker) one(j job, jobs chan job) (alive bool) {
	defer func() {
		if !alive {
			// Goexit: this goroutine and its thread, whose tracing state is broken,
			// end here. Another takes over the queue.
			go w.run(jobs)
		}
		j.done <- alive
	}()
	locked(j.f)
	return true
}
