package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"unsafe"
)

// TemplateArg is a template argument of a custom kernel. Value is a DType, an int or a bool.
type TemplateArg struct {
	Name  string
	Value any
}

// KernelLaunch describes one launch of a custom kernel.
type KernelLaunch struct {
	Outputs     []Output
	Grid        [3]int // in threads, at least 1 on each axis
	Threadgroup [3]int // in threads, at least 1 on each axis
	Template    []TemplateArg
	InitValue   *float32 // initial value of every output element; nil leaves outputs undefined
	Values      []uint32 // bits of the inputs that CUDAKernelSource.Values selects; kernels without Code ignore them
}

// customKernel is a kernel registered with MLX.
type customKernel struct {
	ptr             unsafe.Pointer
	name            string
	inputs, outputs int
}

// newCustomKernel registers a kernel. create makes the backend's kernel from the strings that every kernel has. kind
// names the backend in errors.
func newCustomKernel(kind, name, body string, inputs, outputs []string,
	create func(name, body, inputs, outputs *C.char, err **C.char) unsafe.Pointer,
) (*customKernel, error) {
	err := Check()
	if err == nil && len(outputs) == 0 {
		err = fmt.Errorf("a %s kernel needs at least one output", kind)
	}
	if err != nil {
		return nil, opError(name, err)
	}
	var texts [4]*C.char
	for i, s := range []string{name, body, zeroTerminated(inputs), zeroTerminated(outputs)} {
		texts[i] = C.CString(s)
		defer C.free(unsafe.Pointer(texts[i]))
	}
	var text *C.char
	ptr := create(texts[0], texts[1], texts[2], texts[3], &text)
	if text != nil {
		return nil, opError(name, takeError(text))
	}
	k := &customKernel{ptr: ptr, name: name, inputs: len(inputs), outputs: len(outputs)}
	runtime.AddCleanup(k, func(ptr unsafe.Pointer) { C.mlxg_kernel_free(ptr) }, ptr)
	return k, nil
}

// zeroTerminated joins names, each followed by a 0 byte, for C.
func zeroTerminated(names []string) string {
	return strings.Join(append(names[:len(names):len(names)], ""), "\x00")
}

// apply adds a launch to the graph of the inputs, on the current stream.
func (k *customKernel) apply(l KernelLaunch, inputs []*Array) ([]*Array, error) {
	defer runtime.KeepAlive(k)
	h, err := acquireAll(k.name, inputs)
	if err != nil {
		return nil, err
	}
	defer h.release()
	fail := func(err error) ([]*Array, error) { return nil, opError(k.name, err, inputs...) }
	// MLX would build a function with missing parameters, and a launch of compiled code would pass too few.
	if len(inputs) != k.inputs {
		return fail(errCount("inputs of the kernel", len(inputs), k.inputs))
	}
	if len(l.Outputs) != k.outputs {
		return fail(errCount("outputs of the kernel", len(l.Outputs), k.outputs))
	}
	numbers, names, err := l.flatten(make([]C.int, 0, 64))
	if err != nil {
		return fail(err)
	}
	r := C.mlxg_kernel_apply(k.ptr, h.ptr(), h.n(), &numbers[0], (*C.char)(unsafe.Pointer(unsafe.StringData(names))))
	return wrapAll(k.name, r, inputs...)
}

// flatten appends the launch to numbers, in the form of mlxg_kernel_apply, and returns the names of the template
// arguments.
func (l KernelLaunch) flatten(numbers []C.int) ([]C.int, string, error) {
	for _, threads := range [][3]int{l.Grid, l.Threadgroup} {
		for _, n := range threads {
			if err := check32(n); err != nil {
				return nil, "", err
			}
			if n < 1 {
				return nil, "", fmt.Errorf("the grid is %v and the threadgroup %v: each axis must be at least 1", l.Grid,
					l.Threadgroup)
			}
			numbers = append(numbers, C.int(n))
		}
	}
	numbers = append(numbers, C.int(len(l.Outputs)))
	for i, o := range l.Outputs {
		if err := checkNew(o.DType, o.Shape); err != nil {
			return nil, "", fmt.Errorf("output %d: %w", i, err)
		}
		numbers = append(numbers, C.int(o.DType.c()), C.int(len(o.Shape)))
		for _, n := range o.Shape {
			numbers = append(numbers, C.int(n))
		}
	}
	numbers = append(numbers, C.int(len(l.Template)))
	var names strings.Builder
	for _, t := range l.Template {
		if strings.ContainsRune(t.Name, 0) {
			return nil, "", fmt.Errorf("the name %q of a template argument has a zero byte", t.Name)
		}
		names.WriteString(t.Name)
		names.WriteByte(0)
		kind, value, err := t.flatten()
		if err != nil {
			return nil, "", err
		}
		numbers = append(numbers, kind, value)
	}
	if l.InitValue == nil {
		numbers = append(numbers, 0)
	} else {
		numbers = append(numbers, 1, C.int(int32(math.Float32bits(*l.InitValue))))
	}
	for _, v := range l.Values {
		numbers = append(numbers, C.int(int32(v)))
	}
	return numbers, names.String(), nil
}

// flatten returns the argument's kind (MLXG_TEMPLATE_…) and value.
func (t TemplateArg) flatten() (kind, value C.int, err error) {
	switch v := t.Value.(type) {
	case DType:
		if !v.valid() {
			return 0, 0, fmt.Errorf("template argument %s is an invalid dtype", t.Name)
		}
		return C.MLXG_TEMPLATE_DTYPE, C.int(v.c()), nil
	case int:
		if check32(v) != nil {
			return 0, 0, fmt.Errorf("template argument %s does not fit 32 bits", t.Name)
		}
		return C.MLXG_TEMPLATE_INT, C.int(v), nil
	case bool:
		if v {
			value = 1
		}
		return C.MLXG_TEMPLATE_BOOL, value, nil
	}
	return 0, 0, fmt.Errorf("template argument %s is a %T: it must be a DType, an int or a bool", t.Name, t.Value)
}
