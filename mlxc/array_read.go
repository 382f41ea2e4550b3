package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// String evaluates the array and prints it as MLX does, or prints its error. Inside
// a transform that works on stand-ins there is no value to print, and it says so.
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
		return fmt.Sprintf("array(%s without a value: %v)", describe(a.Shape(), a.DType()), takeText(e))
	}
	defer C.free(unsafe.Pointer(text))
	return C.GoString(text)
}

// ToSlice evaluates a and returns a copy of its elements in row-major order,
// whatever its strides. T must be the Go type of a's dtype: convert first with
// AsType.
func ToSlice[T Element](a *Array) ([]T, error) {
	ctx, err := a.acquire()
	if err != nil {
		return nil, opError("ToSlice", err)
	}
	defer a.release()
	// Held, the array keeps its shape and dtype even if it is freed meanwhile.
	d, shape, dtype := dtypeOf[T](), shapeOf(ctx), dtypeFromC(int(C.mlxg_array_info(ctx).dtype))
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
		return fail(takeText(e))
	}
	releaseFunctions()
	paceGC()
	return out, nil
}

// Item evaluates a, which must have exactly one element, and returns it. T must be the Go
// type of a's dtype, as for ToSlice.
func Item[T Element](a *Array) (T, error) {
	var zero T
	ctx, err := a.acquire()
	if err != nil {
		return zero, opError("Item", err)
	}
	one := C.mlxg_array_info(ctx).size == 1
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

// Strides evaluates the array and returns, for each axis, how many elements of its buffer
// lie between two neighbours. Those of a transposed array are transposed, and 0 is that of
// an axis that was broadcast. ToSlice reads all arrays in row-major order.
func (a *Array) Strides() ([]int, error) {
	const op = "Strides"
	ctx, err := a.acquire()
	if err != nil {
		return nil, opError(op, err)
	}
	defer a.release()
	c := make([]C.int64_t, a.NDim()+1) // never empty: C gets an address
	var e *C.char
	onCleanThread(func() { e = C.mlxg_strides(ctx, &c[0]) })
	if e != nil {
		return nil, opError(op, takeText(e), a)
	}
	strides := make([]int, len(c)-1)
	for i := range strides {
		strides[i] = int(c[i])
	}
	return strides, nil
}

// IsHostBacked reports whether the array's elements were copied from the host's memory, as by
// FromSlice and Scalar. Reading those waits for nothing on every device; what a CUDA device has
// computed is moved to memory of the host first.
func (a *Array) IsHostBacked() bool { return a != nil && a.own }

// IsReady reports whether the array's value is there already, so that reading it
// computes nothing and waits for nothing. Of a transform's stand-ins, those of VJP and
// ValueAndGrad are available where the arguments are; those of Compile and Vmap have no
// value. It is false for an invalid array, and, where there is a CUDA device, for a moment
// after a stream of the CPU was waited for.
func (a *Array) IsReady() bool {
	ctx, err := a.acquire()
	if err != nil {
		return false
	}
	defer a.release()
	return bool(C.mlxg_available(ctx))
}
