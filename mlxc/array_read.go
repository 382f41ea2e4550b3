package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// String evaluates the array and formats it as MLX does. For an invalid array it returns the error. For a placeholder
// without a value, as under Compile or Vmap, it returns the dtype, the shape and MLX's error.
func (a *Array) String() string {
	ctx, err := a.acquire()
	if err != nil {
		return fmt.Sprintf("array(invalid: %v)", err)
	}
	defer a.release()
	var text *C.char
	var e *C.char
	onCleanThread(func() { e = C.mlxg_tostring(ctx, &text) })
	if e != nil {
		return fmt.Sprintf("array(%s without a value: %v)", describe(a.Shape(), a.DType()), takeError(e))
	}
	defer C.free(unsafe.Pointer(text))
	return C.GoString(text)
}

// ToSlice evaluates a and returns a copy of its elements in row-major order, whatever its strides. T must be the Go
// type of a's dtype; use AsType to convert.
func ToSlice[T Element](a *Array) ([]T, error) {
	ctx, err := a.acquire()
	if err != nil {
		return nil, opError("ToSlice", err)
	}
	defer a.release()
	// Read the shape and dtype from the held handle: the array may be freed concurrently.
	d, shape, dtype := dtypeOf[T](), shapeOf(ctx), dtypeFromC(int(C.mlxg_array_info(handleWord(ctx)).dtype))
	fail := func(err error) ([]T, error) {
		return nil, shapeError("ToSlice", err, []DType{dtype}, shape)
	}
	if dtype != d {
		return fail(fmt.Errorf("the elements are not %v: convert with AsType first", d))
	}
	n, err := checkShape(d, shape)
	if err != nil {
		return fail(err)
	}
	out := make([]T, n)
	dst := unsafe.Pointer(unsafe.SliceData(out))
	if len(out) == 0 {
		dst = unsafe.Pointer(&emptyData)
	}
	var e *C.char
	onCleanThread(func() { e = C.mlxg_read(ctx, dst, C.size_t(len(out)*d.Size())) })
	if e != nil {
		return fail(takeError(e))
	}
	releaseFunctions()
	paceGC()
	return out, nil
}

// Item evaluates a, which must have exactly one element, and returns the element. T must be the Go type of a's dtype,
// as for ToSlice.
func Item[T Element](a *Array) (T, error) {
	var zero T
	ctx, err := a.acquire()
	if err != nil {
		return zero, opError("Item", err)
	}
	one := C.mlxg_array_info(handleWord(ctx)).size == 1
	a.release()
	if !one {
		return zero, opError("Item", errors.New("the array does not have exactly one element"), a)
	}
	s, err := ToSlice[T](a)
	if err != nil {
		return zero, err
	}
	return s[0], nil
}

// Strides evaluates the array and returns the stride of each axis: the distance between neighbors along the axis in the
// buffer, in elements. Transposed arrays have permuted strides, and broadcast axes have stride 0. ToSlice reads every
// array in row-major order.
func (a *Array) Strides() ([]int, error) {
	const op = "Strides"
	ctx, err := a.acquire()
	if err != nil {
		return nil, opError(op, err)
	}
	defer a.release()
	c := make([]C.int64_t, a.NDim()+1) // never empty: C needs an address
	var e *C.char
	onCleanThread(func() { e = C.mlxg_strides(ctx, &c[0]) })
	if e != nil {
		return nil, opError(op, takeError(e), a)
	}
	strides := make([]int, len(c)-1)
	for i := range strides {
		strides[i] = int(c[i])
	}
	return strides, nil
}

// IsHostBacked reports whether the elements were copied from host memory, as by FromSlice and Scalar; FromSliceNoCopy
// does not count. Such an array can be read without synchronization on every device. In contrast, reading an array that
// a CUDA device computed copies it to the host.
//
// It is for packages that build operations.
func (a *Array) IsHostBacked() bool { return a != nil && a.hostBacked }

// IsReady reports whether the array's value is available: reading it then neither computes nor blocks. Under
// VJP and ValueAndGrad, an argument's placeholder is ready if the argument is; placeholders of Compile and Vmap never
// are. It is false for an invalid array. On a machine with a CUDA device, it may be false for a short time after a CPU
// stream was synchronized.
//
// It is for packages that build operations.
func (a *Array) IsReady() bool {
	ctx, err := a.acquire()
	if err != nil {
		return false
	}
	defer a.release()
	return bool(C.mlxg_available(ctx))
}
