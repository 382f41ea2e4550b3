package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// Output describes an output of an operation.
type Output struct {
	Shape []int
	DType DType
}

// HostFunction describes a graph node that runs a C function on a CPU stream. With it, a package adds an operation that
// stays lazy.
//
// The pointers are C functions and data, which must stay valid until release is called:
//
//	int  prepare(void* ctx, char* err, size_t errlen);
//	void run(void* ctx, const view* inputs, const view* outputs);
//	void release(void* ctx);
//	struct view { void* data; const int32_t* shape; const int64_t* strides; int32_t ndim; };
//
// Strides are in elements. None of the functions may call Go.
//
//   - prepare may be nil. It reserves scarce resources, on the thread that evaluates. If it fails, it returns nonzero
//     and writes a message to err; every read of an output then returns this error.
//   - run computes the outputs, on a thread of MLX. It may be called several times and concurrently. It cannot fail.
//   - release may be nil. It frees ctx after the last node that uses it is gone, on any thread.
type HostFunction struct {
	Name                  string
	Prepare, Run, Release unsafe.Pointer
	Ctx                   unsafe.Pointer
	// Strided passes inputs with their strides. Otherwise MLX copies inputs to row-major order if needed.
	Strided bool
	Outputs []Output
	// InitValue is the initial value of every element of every output. If nil, outputs are undefined before run.
	InitValue *float32
}

// Apply adds the node to the graph of the inputs, on the current stream, which must be a CPU stream. Each call takes
// ownership of f.Ctx, also a call that fails, and calls Release once.
func (f HostFunction) Apply(inputs ...*Array) ([]*Array, error) {
	release := func() { C.mlxg_release(f.Release, f.Ctx) }
	h, err := acquireAll(f.Name, inputs)
	if err != nil {
		release()
		return nil, err
	}
	defer h.release()
	fail := func(err error) ([]*Array, error) {
		release()
		return nil, opError(f.Name, err, inputs...)
	}
	if len(f.Outputs) == 0 {
		return fail(errors.New("there are no outputs: a host function needs at least one"))
	}
	if f.Run == nil {
		return fail(errors.New("Run is nil"))
	}
	if CurrentDevice() != CPU {
		return fail(errors.New("the current stream is on the GPU: call it inside WithDevice(CPU, …)"))
	}
	dims, types, err := flatten(f.Outputs)
	if err != nil {
		return fail(err)
	}
	name := C.CString(f.Name)
	defer C.free(unsafe.Pointer(name))
	var init *C.float
	if f.InitValue != nil {
		value := C.float(*f.InitValue)
		init = &value
	}
	r := C.mlxg_primitive_call(name, f.Ctx, f.Prepare, f.Run, f.Release, C.bool(!f.Strided), init,
		&dims[0], &types[0], C.size_t(len(f.Outputs)), h.ptr(), h.n())
	return wrapAll(f.Name, r, inputs...)
}

// flatten converts outputs to the arguments of mlxg_primitive_call.
func flatten(outputs []Output) (dims, types []C.int, err error) {
	for i, o := range outputs {
		if err := checkNew(o.DType, o.Shape); err != nil {
			return nil, nil, fmt.Errorf("output %d: %w", i, err)
		}
		dims = append(dims, C.int(len(o.Shape)))
		for _, d := range o.Shape {
			dims = append(dims, C.int(d))
		}
		types = append(types, C.int(o.DType.c()))
	}
	return dims, types, nil
}
