package mlxc

// #include "mlxg_io.h"
import "C"

import "unsafe"

// Node is a node of a traced graph: the name of its primitive, such as "Add", and the strings in the primitive's state.
type Node struct {
	Primitive string
	Strings   []string
}

// Trace runs f on the inputs as MLX does for an export, and returns the nodes that MLX would write. Nothing is
// evaluated. Inside WithPlaceholderGPU, f can build Metal kernels on every machine; their generated source is among the
// strings. As in Export, custom gradients are omitted.
func Trace(f Func, inputs []*Array) (nodes []Node, err error) {
	const op = "Trace"
	if f == nil {
		return nil, opError(op, errNoFunction)
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
			err = takeCallbackError(opError(op, takeError(e), inputs...))
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

// WithPlaceholderGPU runs f. Operations that f calls on the same goroutine run on a GPU stream that exists on every
// machine and cannot evaluate anything. It is useful only inside Trace and Export.
func WithPlaceholderGPU(f func()) { withStream(C.mlxg_placeholder_gpu(), f) }
