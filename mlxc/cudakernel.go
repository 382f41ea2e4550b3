package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// CUDAKernel is a custom CUDA kernel of MLX (mlx_fast_cuda_kernel). MLX writes the signature
// around Body, a __global__ function in namespace mlx::core::cu: inputs are const T*, outputs
// T*, and an input's shape, strides and number of axes are there, by value, if Body names
// them (x_shape, x_strides, x_ndim for the input x). Template arguments are constants inside
// the body. NVRTC compiles it when a launch is evaluated, for which MLX wants CUDA's headers in
// CUDA_HOME.
//
// MLX keeps compiled kernels by name, on disk too: a name must change with the text, so put
// a hash of it in.
type CUDAKernel struct {
	kernel C.mlx_fast_cuda_kernel
	name   string
	inputs int
}

// CUDAKernelSource describes a CUDA kernel to MLX.
type CUDAKernelSource struct {
	Name    string
	Inputs  []string
	Outputs []string
	Body    string
	Header  string // pasted before the function, outside of its namespace
	// Strided passes inputs as they are; else MLX copies them to row-major order
	// where they are not.
	Strided bool
	// SharedMemory is how many bytes of dynamic shared memory a block gets.
	SharedMemory int
}

// NewCUDAKernel registers a kernel. It fails where MLX was built without CUDA.
func NewCUDAKernel(s CUDAKernelSource) (*CUDAKernel, error) {
	fail := func(err error) (*CUDAKernel, error) { return nil, &Error{Op: s.Name, Err: err} }
	switch {
	case initError != nil:
		return fail(initError)
	case len(s.Outputs) == 0:
		return fail(errors.New("a CUDA kernel needs an output"))
	case s.SharedMemory < 0:
		return fail(fmt.Errorf("%d bytes of shared memory: there must be 0 or more", s.SharedMemory))
	}
	if err := check32(s.SharedMemory); err != nil {
		return fail(err)
	}
	name, body, header := C.CString(s.Name), C.CString(s.Body), C.CString(s.Header)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(body))
	defer C.free(unsafe.Pointer(header))
	in, out := stringVector(s.Inputs), stringVector(s.Outputs)
	defer C.mlx_vector_string_free(in)
	defer C.mlx_vector_string_free(out)
	var text *C.char
	k := C.mlxg_cuda_kernel_new(name, in, out, body, header, C.bool(!s.Strided), C.int(s.SharedMemory), &text)
	if text != nil {
		return fail(takeText(text))
	}
	c := &CUDAKernel{kernel: k, name: s.Name, inputs: len(s.Inputs)}
	runtime.AddCleanup(c, func(k C.mlx_fast_cuda_kernel) { C.mlx_fast_cuda_kernel_free(k) }, k)
	return c, nil
}

// Apply adds a launch to the graph of the inputs, on the current stream. CUDA runs whole
// blocks: where Grid is no multiple of Threadgroup, threads beyond the grid run too.
func (k *CUDAKernel) Apply(l KernelLaunch, inputs ...*Array) ([]*Array, error) {
	defer runtime.KeepAlive(k)
	return l.apply(k.name, k.inputs, inputs, func(h handles, l *C.mlxg_launch) C.mlxg_results {
		return C.mlxg_cuda_kernel_apply(k.kernel, h.ptr(), h.n(), l)
	})
}
