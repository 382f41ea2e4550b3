package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
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

// Apply adds a launch to the graph of the inputs, on the current stream.
func (k *MetalKernel) Apply(l KernelLaunch, inputs ...*Array) ([]*Array, error) {
	defer runtime.KeepAlive(k)
	return l.apply(k.name, k.inputs, inputs, func(h handles, l *C.mlxg_launch) C.mlxg_results {
		return C.mlxg_metal_kernel_apply(k.kernel, h.ptr(), h.n(), l)
	})
}
