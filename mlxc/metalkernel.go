package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"unsafe"
)

// MetalKernel is a custom Metal kernel of MLX (mlx_fast_metal_kernel). MLX writes
// the function's signature around Body; the names of inputs and outputs become
// its parameters, and Metal's position attributes are there if their names occur
// in Body.
type MetalKernel struct {
	kernel C.mlx_fast_metal_kernel
	name   string
	inputs int
}

// MetalKernelSource describes a Metal kernel to MLX.
type MetalKernelSource struct {
	Name    string
	Inputs  []string
	Outputs []string
	Body    string
	Header  string // pasted before the function
	// Strided passes inputs as they are; else MLX copies them to row-major order
	// where they are not.
	Strided bool
	// AtomicOutputs makes every output a pointer to atomic elements.
	AtomicOutputs bool
}

// NewMetalKernel registers a kernel. MLX compiles it when a launch is evaluated.
func NewMetalKernel(s MetalKernelSource) (*MetalKernel, error) {
	if initError != nil {
		return nil, &Error{Op: s.Name, Err: initError}
	}
	if len(s.Outputs) == 0 {
		return nil, &Error{Op: s.Name, Err: errors.New("a Metal kernel needs an output")}
	}
	name, body, header := C.CString(s.Name), C.CString(s.Body), C.CString(s.Header)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(body))
	defer C.free(unsafe.Pointer(header))
	in, out := stringVector(s.Inputs), stringVector(s.Outputs)
	defer C.mlx_vector_string_free(in)
	defer C.mlx_vector_string_free(out)
	var text *C.char
	k := C.mlxg_metal_kernel_new(name, in, out, body, header, C.bool(!s.Strided), C.bool(s.AtomicOutputs), &text)
	if text != nil {
		return nil, &Error{Op: s.Name, Err: takeText(text)}
	}
	m := &MetalKernel{kernel: k, name: s.Name, inputs: len(s.Inputs)}
	runtime.AddCleanup(m, func(k C.mlx_fast_metal_kernel) { C.mlx_fast_metal_kernel_free(k) }, k)
	return m, nil
}

// TemplateArg is a template argument of a kernel; Value is a DType, an int or a
// bool.
type TemplateArg struct {
	Name  string
	Value any
}

// MetalLaunch describes one launch of a kernel.
type MetalLaunch struct {
	Outputs     []Output
	Grid        [3]int // in threads
	Threadgroup [3]int // in threads
	Template    []TemplateArg
	InitValue   *float32 // of every element of every output; nil leaves them unset
}

// Apply adds a launch to the graph of the inputs, on the current stream.
func (k *MetalKernel) Apply(l MetalLaunch, inputs ...*Array) ([]*Array, error) {
	h, err := acquireAll(k.name, inputs)
	if err != nil {
		return nil, err
	}
	defer h.release()
	defer runtime.KeepAlive(k)
	fail := func(err error) ([]*Array, error) { return nil, opError(k.name, err, inputs...) }
	// MLX does not count them and would build a function with parameters missing.
	if len(inputs) != k.inputs {
		return fail(errCount("inputs of the kernel", len(inputs), k.inputs))
	}
	c := C.mlx_fast_metal_kernel_config_new()
	defer C.mlx_fast_metal_kernel_config_free(c)
	for i, o := range l.Outputs {
		if err := checkNew(o.DType, o.Shape); err != nil {
			return fail(fmt.Errorf("output %d: %w", i, err))
		}
		dims := cShape(o.Shape)
		C.mlx_fast_metal_kernel_config_add_output_arg(c, &dims[0], C.size_t(len(o.Shape)), C.mlx_dtype(o.DType.c()))
	}
	grid, err := cInts(l.Grid[:])
	if err != nil {
		return fail(err)
	}
	group, err := cInts(l.Threadgroup[:])
	if err != nil {
		return fail(err)
	}
	C.mlx_fast_metal_kernel_config_set_grid(c, grid[0], grid[1], grid[2])
	C.mlx_fast_metal_kernel_config_set_thread_group(c, group[0], group[1], group[2])
	if l.InitValue != nil {
		C.mlx_fast_metal_kernel_config_set_init_value(c, C.float(*l.InitValue))
	}
	for _, t := range l.Template {
		name := C.CString(t.Name)
		switch v := t.Value.(type) {
		case DType:
			if !v.valid() {
				err = fmt.Errorf("template argument %s is an invalid dtype", t.Name)
				break
			}
			C.mlx_fast_metal_kernel_config_add_template_arg_dtype(c, name, C.mlx_dtype(v.c()))
		case int:
			if v < math.MinInt32 || v > math.MaxInt32 {
				err = fmt.Errorf("template argument %s is beyond 32 bits", t.Name)
			}
			C.mlx_fast_metal_kernel_config_add_template_arg_int(c, name, C.int(v))
		case bool:
			C.mlx_fast_metal_kernel_config_add_template_arg_bool(c, name, C.bool(v))
		default:
			err = fmt.Errorf("template argument %s is a %T: it must be a DType, an int or a bool", t.Name, t.Value)
		}
		C.free(unsafe.Pointer(name))
		if err != nil {
			return fail(err)
		}
	}
	return wrapAll(k.name, C.mlxg_metal_kernel_apply(k.kernel, h.ptr(), h.n(), c), inputs...)
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
