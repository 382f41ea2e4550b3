package mlxc

// #include "mlxg_io.h"
import "C"

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"unsafe"

	"github.com/mlxgrad/mlxgrad/mlxc/internal/savefile"
)

// Export writes f, traced for inputs of these shapes and dtypes, to a file that MLX reads on other machines and from
// its other languages. The usual extension is .mlxfn; see Import. The file is replaced atomically. It cannot be a pipe
// or a device.
//
// f may compute a gradient: a VJP or ValueAndGrad inside f is written as the graph that it builds. A function with a
// custom gradient (see CustomVJP) is written as its forward computation; MLX's format cannot hold the gradient. Inside
// WithPlaceholderGPU, a function for a Mac can be written on any machine. Captured arrays are written too; arrays
// that package mlxio loaded lazily are read first. CPU kernels of packages customkernels and ops are functions of this
// process, which a file cannot hold.
func Export(file string, f Func, inputs ...*Array) error {
	return export("Export", file, f, inputs, func(id C.uintptr_t, name *C.char, h handles) *C.char {
		return C.mlxg_export(id, name, h.ptr(), h.n())
	})
}

// ExportShapeless is Export for inputs of all shapes with the same number of axes. The graph that f builds must not
// depend on the shapes. To check this, f runs again for each size of the inputs, on arrays in which this size is
// multiplied by 8. An error of f then means that f does not accept other sizes. A dependence that these sizes do not
// show stays unnoticed, such as a branch for sizes above a limit.
//
// The graph may contain elementwise operations, reductions, Softmax, Sort, MatMul, Take, Concatenate, convolutions,
// norms and operations that only change the axes. Others are an error. The imported function checks the shapes of all
// operands, so a call with sizes that f does not accept is an error too, as are empty arrays for most operations.
func ExportShapeless(file string, f Func, inputs ...*Array) error {
	const op = "ExportShapeless"
	for _, a := range inputs {
		if a.Err() == nil && a.Size() == 0 {
			return opError(op, errors.New("an input is empty: the trace needs inputs with elements"), inputs...)
		}
	}
	return export(op, file, f, inputs, func(id C.uintptr_t, name *C.char, h handles) *C.char {
		e := C.mlxg_export_shapeless(id, name, h.ptr(), h.n())
		if e == nil {
			callbackError = nil // f may have failed for the sizes of a check
		}
		return e
	})
}

// ExportTraces is Export for several lists of inputs: the file holds a trace of f for each. The imported function
// accepts the signature of each trace. Constants that traces share are written once.
func ExportTraces(file string, f Func, inputs ...[]*Array) error {
	sizes := make([]C.size_t, len(inputs), len(inputs)+1)
	for i, list := range inputs {
		sizes[i] = C.size_t(len(list))
	}
	return export("ExportTraces", file, f, slices.Concat(inputs...),
		func(id C.uintptr_t, name *C.char, h handles) *C.char {
			return C.mlxg_export_traces(id, name, h.ptr(), &sizes[:cap(sizes)][0], C.size_t(len(inputs)))
		})
}

// NamedFunc is a function of arrays with positional and named arguments.
type NamedFunc = func(args []*Array, named map[string]*Array) []*Array

// ExportNamed is Export for a function with named arguments, MLX's keyword arguments. See Imported.CallNamed.
func ExportNamed(file string, f NamedFunc, named map[string]*Array, args ...*Array) error {
	const op = "ExportNamed"
	if f == nil {
		return opError(op, errNoFunction)
	}
	names := slices.Sorted(maps.Keys(named))
	listed := func(all []*Array) []*Array {
		byName := make(map[string]*Array, len(names))
		for i, name := range names {
			byName[name] = all[len(args)+i]
		}
		return f(all[:len(args):len(args)], byName)
	}
	c, free, err := cTexts(names)
	if err != nil {
		return opError(op, err)
	}
	defer free()
	return export(op, file, listed, withNamed(args, names, named),
		func(id C.uintptr_t, name *C.char, h handles) *C.char {
			return C.mlxg_export_named(id, name, h.ptr(), h.n(), &c[0], C.size_t(len(names)))
		})
}

// withNamed appends the named arrays to args, in the order of names.
func withNamed(args []*Array, names []string, named map[string]*Array) []*Array {
	all := slices.Clone(args)
	for _, name := range names {
		all = append(all, named[name])
	}
	return all
}

// cTexts copies strings for C. The list is never empty.
func cTexts(texts []string) (list []*C.char, free func(), err error) {
	list = make([]*C.char, len(texts)+1)
	free = func() {
		for _, p := range list {
			C.free(unsafe.Pointer(p))
		}
	}
	for i, s := range texts {
		if strings.ContainsRune(s, 0) {
			free()
			return nil, nil, fmt.Errorf("the name %q has a zero byte", s)
		}
		list[i] = C.CString(s)
	}
	return list, free, nil
}

func export(op, file string, fun Func, inputs []*Array, write func(id C.uintptr_t, name *C.char,
	h handles) *C.char,
) error {
	if fun == nil {
		return opError(op, errNoFunction)
	}
	h, err := acquireAll(op, inputs)
	if err != nil {
		return err
	}
	defer h.release()
	if savefile.IsSpecial(file) {
		return opError(op, fmt.Errorf("%s: MLX writes to regular files only", file), inputs...)
	}
	// MLX writes while it traces, and may fail halfway.
	err = savefile.Replace(file, func(f *os.File) (err error) {
		name := C.CString(f.Name())
		defer C.free(unsafe.Pointer(name))
		locked(func() {
			if e := write(register(fun), name, h); e != nil {
				err = takeCallbackError(opError(op, takeError(e), inputs...))
			}
		})
		return err
	})
	var own *Error
	if err != nil && !errors.As(err, &own) {
		return opError(op, fmt.Errorf("%s: %w", file, err))
	}
	return err
}
