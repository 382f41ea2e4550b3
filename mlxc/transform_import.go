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

// Imported is a function that was read from a file.
type Imported struct {
	mu      sync.Mutex     // of ctx; taken after the graph lock, which a caller may hold
	ctx     unsafe.Pointer // nil once it is closed
	cleanup runtime.Cleanup
}

// Import reads a function that Export, or MLX in another language, wrote. Its constants
// are read at once, on the calling goroutine.
//
// A .mlxfn file is a program and has no published format: MLX believes what it says, so
// import files from sources that you trust only. A file that is cut short is an error, as
// is one for a device that this machine lacks.
func Import(file string) (*Imported, error) {
	const op = "Import"
	if err := Check(); err != nil {
		return nil, opError(op, err)
	}
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: it is no regular file", file)
	}
	if err != nil {
		return nil, opError(op, err)
	}
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	f := &Imported{}
	if e := C.mlxg_import(name, &f.ctx); e != nil {
		return nil, opError(op, fmt.Errorf("%s: %w", file, takeText(e)))
	}
	f.cleanup = runtime.AddCleanup(f, freeImported, f.ctx)
	return f, nil
}

// freeImported waits for the graph lock, which the collector's goroutine must not do.
func freeImported(ctx unsafe.Pointer) { go C.mlxg_import_free(ctx) }

// Close frees the function. Arrays that it returned stay good; later calls fail. What
// became unreachable is freed without it.
func (f *Imported) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx != nil {
		f.cleanup.Stop()
		freeImported(f.ctx)
		f.ctx = nil
	}
}

// Call adds the function's operations to the graph of the arguments, which must have the
// dtypes, and unless it was exported shapeless the shapes, of one of the traces in the
// file. The operations run on the devices that they were exported for. It may be called
// by several goroutines and inside transforms: the operations are MLX's own, with their
// gradients.
func (f *Imported) Call(args ...*Array) ([]*Array, error) { return f.CallNamed(nil, args...) }

// CallNamed is Call for a function some of whose arguments have names, see ExportNamed.
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
