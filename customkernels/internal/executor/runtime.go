package executor

/*
#include <stdlib.h>
#include "runtime.h"

// The functions are in libmlxg.
typedef int (*mlxg_host_load_fn)(const char*, mlxg_host_library*, char*, size_t);
static int load(void* f, const char* path, mlxg_host_library* out, char* err, size_t errlen) {
  return ((mlxg_host_load_fn)f)(path, out, err, errlen);
}
typedef void* (*mlxg_host_launch_new_fn)(const mlxg_host_launch_config*);
static void* launch_new(void* f, const mlxg_host_launch_config* config) {
  return ((mlxg_host_launch_new_fn)f)(config);
}
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/internal/library"
	_ "github.com/mlxgrad/mlxgrad/mlxc" // which loads libmlxg
)

// maxInputs is the largest number of inputs, and of buffers, of a kernel.
const maxInputs = 64

var libraries = toolchain.Cache[*Library]{Load: load}

// Compile returns the library of a kernel: see [toolchain.Cache.Compile].
func Compile(ctx context.Context, source string) (*Library, error) {
	return libraries.Compile(ctx, source)
}

// Metadata is a set of buffers that follow the data of an input. MLX passes each only if the kernel's source names it.
type Metadata uint8

// The bits of Metadata, in the order of the buffers.
const (
	Shape Metadata = 1 << iota
	Strides
	NDim
)

// A Library is a compiled kernel. It stays loaded for the life of the process.
type Library struct {
	c    C.mlxg_host_library
	name string
}

// load loads a shader library into the process.
func load(path string) (*Library, error) {
	f, err := runtimeFunctions()
	if err != nil {
		return nil, err
	}
	cpath := C.CString(path)
	defer C.free(unsafe.Pointer(cpath))
	var message [512]C.char
	l := new(Library)
	if C.load(f.load, cpath, &l.c, &message[0], C.size_t(len(message))) != 0 {
		return nil, errors.New(C.GoString(&message[0]))
	}
	l.name = C.GoString(l.c.name)
	return l, nil
}

// Name returns the kernel's name.
func (l *Library) Name() string { return l.name }

// Buffers returns the number of the kernel's buffers.
func (l *Library) Buffers() int { return int(l.c.buffers) }

// ThreadgroupMemory returns the size of the kernel's threadgroup variables in bytes.
func (l *Library) ThreadgroupMemory() int { return int(l.c.threadgroup_memory) }

// NeedsFibers reports whether threads of the kernel synchronize. Any other kernel runs as a loop.
func (l *Library) NeedsFibers() bool { return l.c.uses_fibers != 0 }

// maxGroups is the largest number of threadgroups, which no run of a program can reach.
const maxGroups = 1 << 48

// NewLaunch prepares a launch of the kernel. As in MLX, a threadgroup larger than the grid is reduced to it, and the
// last threadgroup of an axis may be smaller. There is one Metadata for each input. The remaining buffers are the
// outputs.
//
// The results are C functions and their argument, for a primitive of MLX:
//
//	int  prepare(void* ctx, char* err, size_t errlen);
//	void run(void* ctx, const mlxg_view* inputs, const mlxg_view* outputs);
//	void release(void* ctx);
//
// prepare allocates all resources. After it has returned 0, run cannot fail. Arrays are row-contiguous. run may be
// called any number of times, on any threads, concurrently. release frees ctx after the last run.
func (l *Library) NewLaunch(grid, threadgroup [3]int, inputs ...Metadata) (prepare, run, release, ctx unsafe.Pointer,
	err error,
) {
	fail := func(format string, args ...any) (a, b, c, d unsafe.Pointer, err error) {
		return nil, nil, nil, nil, fmt.Errorf("kernel %s: "+format, append([]any{l.name}, args...)...)
	}
	threads, groups := 1, uint64(1)
	for d := range 3 {
		if grid[d] < 1 || threadgroup[d] < 1 {
			return fail("grid %v and threadgroup %v must be positive", grid, threadgroup)
		}
		if uint64(grid[d]) > 1<<32-1 {
			return fail("grid %v does not fit 32 bits", grid)
		}
		if threadgroup[d] > metalstd.MaxThreads {
			return fail("threadgroup %v has more than %d threads", threadgroup, metalstd.MaxThreads)
		}
		threads *= threadgroup[d]
		overflow, n := bits.Mul64(groups, uint64((grid[d]-1)/threadgroup[d]+1))
		if overflow != 0 || n > maxGroups {
			return fail("grid %v of threadgroups %v has more than 2⁴⁸ threadgroups", grid, threadgroup)
		}
		groups = n
	}
	if threads > metalstd.MaxThreads {
		return fail("threadgroup %v has %d threads, more than %d", threadgroup, threads, metalstd.MaxThreads)
	}
	if n := l.ThreadgroupMemory(); n > metalstd.MaxThreadgroupMemory {
		return fail("%d bytes of threadgroup memory, more than %d", n, metalstd.MaxThreadgroupMemory)
	}
	bound := len(inputs)
	var config C.mlxg_host_launch_config
	if len(inputs) > maxInputs {
		return fail("%d inputs, more than %d", len(inputs), maxInputs)
	}
	for i, m := range inputs {
		config.metadata[i] = C.uint8_t(m)
		for bit := Shape; bit <= NDim; bit <<= 1 {
			if m&bit != 0 {
				bound++
			}
		}
	}
	if bound > l.Buffers() || l.Buffers() > maxInputs {
		return fail("%d inputs with metadata need %d buffers, and the kernel has %d", len(inputs), bound, l.Buffers())
	}
	config.entry, config.module = l.c.entry, l.c.module
	for d := range 3 {
		config.grid[d], config.threadgroup[d] = C.uint32_t(grid[d]), C.uint32_t(threadgroup[d])
	}
	config.inputs, config.outputs = C.uint32_t(len(inputs)), C.uint32_t(l.Buffers()-bound)
	config.workers = C.uint32_t(runtime.GOMAXPROCS(0))
	f, err := runtimeFunctions() // found already, when the kernel was loaded
	if err != nil {
		return fail("%v", err)
	}
	ctx = C.launch_new(f.launchNew, &config)
	if ctx == nil {
		return fail("out of memory")
	}
	return f.prepare, f.run, f.release, ctx, nil
}

// functions holds the addresses of the runtime's functions in libmlxg.
type functions struct{ load, launchNew, prepare, run, release unsafe.Pointer }

// runtimeFunctions finds the functions. Only success is cached, so loading MLX can be retried.
func runtimeFunctions() (functions, error) {
	if f := foundFunctions.Load(); f != nil {
		return *f, nil
	}
	var f functions
	for name, to := range map[string]*unsafe.Pointer{
		"mlxg_host_load": &f.load, "mlxg_host_launch_new": &f.launchNew, "mlxg_host_launch_prepare": &f.prepare,
		"mlxg_host_launch_run": &f.run, "mlxg_host_launch_release": &f.release,
	} {
		var err error
		if *to, err = library.Symbol(name); err != nil {
			return functions{}, err
		}
	}
	foundFunctions.Store(&f)
	return f, nil
}

var foundFunctions atomic.Pointer[functions]
