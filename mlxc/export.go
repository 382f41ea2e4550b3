package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"
)

// exports numbers the temporary files of this process.
var exports atomic.Int64

// Export writes f, as it computes on inputs of these shapes and dtypes, to a file
// that MLX reads on another machine and from its other languages (the usual
// extension is .mlxfn). The file is there only once it is complete.
//
// f may be a gradient: a VJP or ValueAndGrad inside it is written as the graph that
// it builds. A function with a gradient of its own (see CustomVJP) is written as what it
// computes; MLX's format has no place for the gradient itself. Inside
// WithPlaceholderGPU, a function for a Mac is written on any machine.
func Export(file string, f Func, inputs ...*Array) (err error) {
	const op = "Export"
	if f == nil {
		return &Error{Op: op, Err: errNoFunction}
	}
	h, err := acquireAll(op, inputs)
	if err != nil {
		return err
	}
	defer h.release()
	// MLX writes while it traces: what it leaves behind after an error is removed.
	// After a success there is nothing to remove.
	temporary := fmt.Sprintf("%s.%d.%d.mlxfn", file, os.Getpid(), exports.Add(1))
	if err := os.WriteFile(temporary, nil, 0o666); err != nil { //nolint:gosec // as MLX's own writer makes them
		return &Error{Op: op, Err: err}
	}
	defer os.Remove(temporary)
	name := C.CString(temporary)
	defer C.free(unsafe.Pointer(name))
	locked(func() {
		if e := C.mlxg_export(register(f), name, h.ptr(), h.n()); e != nil {
			err = takeCallbackError(opError(op, takeText(e), inputs...))
		}
	})
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, file); err != nil {
		return &Error{Op: op, Err: err}
	}
	return nil
}

// Node is a node of a traced graph: the name of its primitive, such as "Add", and
// the strings of the primitive's state.
type Node struct {
	Primitive string
	Strings   []string
}

// Trace runs f on the inputs as MLX does when it exports a function, and returns
// the nodes that MLX would write. Nothing is evaluated. While it runs, Metal
// kernels can be built on every machine (see WithPlaceholderGPU), which is how
// their source is had on Linux. As in Export, custom gradients are left out.
func Trace(f Func, inputs []*Array) (nodes []Node, err error) {
	const op = "Trace"
	if f == nil {
		return nil, &Error{Op: op, Err: errNoFunction}
	}
	h, err := acquireAll(op, inputs)
	if err != nil {
		return nil, err
	}
	defer h.release()
	locked(func() {
		var list *C.mlxg_node
		var n C.size_t
		if e := C.mlxg_trace(register(f), h.ptr(), h.n(), &list, &n); e != nil {
			err = takeCallbackError(opError(op, takeText(e), inputs...))
			return
		}
		defer C.mlxg_nodes_free(list, n)
		for _, c := range unsafe.Slice(list, n) {
			node := Node{Primitive: C.GoString(c.name)}
			for _, s := range unsafe.Slice(c.strings, c.n_strings) {
				node.Strings = append(node.Strings, C.GoString(s))
			}
			nodes = append(nodes, node)
		}
	})
	return nodes, err
}

// WithPlaceholderGPU runs f; operations that f calls, on the same goroutine, go to
// a GPU stream that exists on every machine and on which nothing can be
// evaluated. It is of use inside Trace only.
func WithPlaceholderGPU(f func()) { withStream(C.mlxg_placeholder_gpu(), f) }
