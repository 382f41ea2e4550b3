package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// TemplateArg is a template argument of a custom kernel; Value is a DType, an int or a
// bool.
type TemplateArg struct {
	Name  string
	Value any
}

// KernelLaunch describes one launch of a custom kernel.
type KernelLaunch struct {
	Outputs     []Output
	Grid        [3]int // in threads
	Threadgroup [3]int // in threads
	Template    []TemplateArg
	InitValue   *float32 // of every element of every output; nil leaves them unset
}

// apply checks a launch of the kernel of this name and makes it.
func (l KernelLaunch) apply(name string, want int, inputs []*Array, f func(handles, *C.mlxg_launch) C.mlxg_results) ([]*Array, error) {
	h, err := acquireAll(name, inputs)
	if err != nil {
		return nil, err
	}
	defer h.release()
	fail := func(err error) ([]*Array, error) { return nil, opError(name, err, inputs...) }
	// MLX does not count them and would build a function with parameters missing.
	if len(inputs) != want {
		return fail(errCount("inputs of the kernel", len(inputs), want))
	}
	dims, dtypes, err := flatten(l.Outputs)
	if err != nil {
		return fail(err)
	}
	var c C.mlxg_launch
	for i := range 3 {
		if err := check32(l.Grid[i], l.Threadgroup[i]); err != nil {
			return fail(err)
		}
		c.grid[i], c.threadgroup[i] = C.int(l.Grid[i]), C.int(l.Threadgroup[i])
	}
	names, kinds, values, err := templateArguments(l.Template)
	if err != nil {
		return fail(err)
	}
	text := C.CString(names)
	defer C.free(unsafe.Pointer(text))
	var pins runtime.Pinner // the structure leads to Go's memory
	defer pins.Unpin()
	for p, list := range map[**C.int][]C.int{&c.dims: dims, &c.dtypes: dtypes, &c.kinds: kinds, &c.values: values} {
		if len(list) > 0 {
			pins.Pin(&list[0])
			*p = &list[0]
		}
	}
	if l.InitValue != nil {
		value := C.float(*l.InitValue)
		pins.Pin(&value)
		c.init_value = &value
	}
	c.names, c.n_outputs, c.n_template = text, C.size_t(len(l.Outputs)), C.size_t(len(l.Template))
	return wrapAll(name, f(h, &c), inputs...)
}

// templateArguments gives the arguments in the form that C takes.
func templateArguments(args []TemplateArg) (names string, kinds, values []C.int, err error) {
	var b strings.Builder
	for _, t := range args {
		if strings.ContainsRune(t.Name, 0) {
			return "", nil, nil, fmt.Errorf("the template argument %q has a 0 in its name", t.Name)
		}
		b.WriteString(t.Name + "\x00")
		kind, value := C.int(C.MLXG_TEMPLATE_BOOL), 0
		switch v := t.Value.(type) {
		case DType:
			if !v.valid() {
				return "", nil, nil, fmt.Errorf("template argument %s is an invalid dtype", t.Name)
			}
			kind, value = C.MLXG_TEMPLATE_DTYPE, v.c()
		case int:
			if check32(v) != nil {
				return "", nil, nil, fmt.Errorf("template argument %s is beyond 32 bits", t.Name)
			}
			kind, value = C.MLXG_TEMPLATE_INT, v
		case bool:
			if v {
				value = 1
			}
		default:
			return "", nil, nil, fmt.Errorf("template argument %s is a %T: it must be a DType, an int or a bool", t.Name, t.Value)
		}
		kinds, values = append(kinds, kind), append(values, C.int(value))
	}
	return b.String(), kinds, values, nil
}

func stringVector(list []string) C.mlx_vector_string {
	v := C.mlx_vector_string_new()
	for _, s := range list {
		c := C.CString(s)
		C.mlx_vector_string_append_value(v, c)
		C.free(unsafe.Pointer(c))
	}
	return v
}
