package mlxc

// #include "mlxg_io.h"
import "C"

import (
	"io"
	"strings"
	"unsafe"
)

// PrintGraph writes the inputs and the outputs of a graph, and the operations that are not evaluated yet, one per line
// in the order of evaluation. names holds names of arrays; other arrays are called A, B, and so on.
func PrintGraph(w io.Writer, names map[*Array]string, outputs ...*Array) error {
	return printGraph("PrintGraph", false, w, names, outputs)
}

// WriteDOT writes the graph of PrintGraph in the DOT language of Graphviz (https://graphviz.org).
func WriteDOT(w io.Writer, names map[*Array]string, outputs ...*Array) error {
	return printGraph("WriteDOT", true, w, names, outputs)
}

func printGraph(op string, dot bool, w io.Writer, names map[*Array]string, outputs []*Array) error {
	h, err := acquireAll(op, outputs)
	if err != nil {
		return err
	}
	defer h.release()
	var named []*Array
	var texts []string
	for a, name := range names {
		if dot {
			name = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name)
		}
		named, texts = append(named, a), append(texts, name)
	}
	n, err := acquireAll(op, named)
	if err != nil {
		return err
	}
	defer n.release()
	c, free, err := cTexts(texts)
	if err != nil {
		return opError(op, err)
	}
	defer free()
	var text *C.char
	var size C.size_t
	locked(func() {
		if e := C.mlxg_graph_text(C.bool(dot), h.ptr(), h.n(), n.ptr(), &c[0], n.n(), &text, &size); e != nil {
			err = opError(op, takeError(e), outputs...)
		}
	})
	defer C.free(unsafe.Pointer(text))
	if err != nil {
		return err
	}
	if _, err := w.Write(unsafe.Slice((*byte)(unsafe.Pointer(text)), size)); err != nil {
		return opError(op, err)
	}
	return nil
}
