package mlxc

// #include "mlxg_io.h"
import "C"

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"unsafe"
)

// Imported is a function read from a file.
type Imported struct {
	mu      sync.Mutex     // guards ctx; locked after the graph lock, which a caller may hold
	ctx     unsafe.Pointer // nil after Close
	cleanup runtime.Cleanup
}

// Import reads a function written by Export, or by MLX in another language. It reads the constants at once, on the
// calling goroutine.
//
// A .mlxfn file is a program in an unpublished format, and MLX does not validate it: import only files from trusted
// sources. A truncated file is an error, as is a file for a device that this machine lacks.
func Import(file string) (*Imported, error) {
	const op = "Import"
	if err := Check(); err != nil {
		return nil, opError(op, err)
	}
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: it is not a regular file", file)
	}
	if err != nil {
		return nil, opError(op, err)
	}
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	f := &Imported{}
	if e := C.mlxg_import(name, &f.ctx); e != nil {
		return nil, opError(op, fmt.Errorf("%s: %w", file, takeError(e)))
	}
	f.cleanup = runtime.AddCleanup(f, freeImported, f.ctx)
	return f, nil
}

// freeImported frees the function on a new goroutine: mlxg_import_free waits for the graph lock, and a cleanup must not
// wait.
func freeImported(ctx unsafe.Pointer) { go C.mlxg_import_free(ctx) }

// Close frees the function. Arrays that it returned stay valid; later calls fail. An unreachable function is freed
// without Close.
func (f *Imported) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx != nil {
		f.cleanup.Stop()
		freeImported(f.ctx)
		f.ctx = nil
	}
}

// Call adds the function's operations to the graph of the arguments. The arguments must have the dtypes of one of the
// traces in the file, and its shapes unless it was exported shapeless. The operations run on the devices for which they
// were exported. Several goroutines may use the function, as may functions under transforms: the operations are MLX's
// own and have gradients.
func (f *Imported) Call(args ...*Array) ([]*Array, error) { return f.CallNamed(nil, args...) }

// CallNamed is Call for a function with named arguments; see ExportNamed.
func (f *Imported) CallNamed(named map[string]*Array, args ...*Array) ([]*Array, error) {
	const op = "Imported.Call"
	names := slices.Sorted(maps.Keys(named))
	all := withNamed(args, names, named)
	h, err := acquireAll(op, all)
	if err != nil {
		return nil, err
	}
	defer h.release()
	c, free, err := cTexts(names)
	if err != nil {
		return nil, opError(op, err)
	}
	defer free()
	var results []*Array
	locked(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.ctx == nil {
			err = opError(op, errors.New("the function was closed"))
			return
		}
		results, err = wrapAll(op, C.mlxg_import_call(f.ctx, h.ptr(), h.n(), &c[0], C.size_t(len(names))), all...)
	})
	return results, err
}
