package mlxc

// #include "mlxg.h"
import "C"

import "unsafe"

// MetalKernel is a custom Metal kernel of MLX (mlx_fast_metal_kernel). MLX generates the function's signature around
// Body. Metal's position attributes, such as thread_position_in_grid, are parameters if their names occur in Body.
//
// Any goroutine may use a kernel. It is freed when it becomes unreachable.
type MetalKernel struct{ kernel *customKernel }

// MetalKernelSource is the source of a Metal kernel.
type MetalKernelSource struct {
	Name    string
	Inputs  []string // names of the parameters for inputs
	Outputs []string // names of the parameters for outputs
	Body    string
	Header  string // text before the function
	// Strided passes inputs with their strides. Otherwise MLX copies inputs to row-major order if needed.
	Strided bool
	// AtomicOutputs makes every output a pointer to atomic elements.
	AtomicOutputs bool
}

// NewMetalKernel registers a kernel. MLX compiles it when a launch is evaluated.
func NewMetalKernel(s MetalKernelSource) (*MetalKernel, error) {
	header := C.CString(s.Header)
	defer C.free(unsafe.Pointer(header))
	k, err := newCustomKernel("Metal", s.Name, s.Body, s.Inputs, s.Outputs, func(name, body, inputs, outputs *C.char,
		err **C.char,
	) unsafe.Pointer {
		return C.mlxg_metal_kernel_new(name, inputs, C.size_t(len(s.Inputs)), outputs, C.size_t(len(s.Outputs)), body,
			header,
			C.bool(!s.Strided), C.bool(s.AtomicOutputs), err)
	})
	if err != nil {
		return nil, err
	}
	return &MetalKernel{k}, nil
}

// Apply adds a launch to the graph of the inputs, on the current stream.
func (k *MetalKernel) Apply(l KernelLaunch, inputs ...*Array) ([]*Array, error) {
	return k.kernel.apply(l, inputs)
}
