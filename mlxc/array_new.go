package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"unsafe"
)

// FromSlice makes an array with a copy of data in row-major order. Without a
// shape it has one axis of len(data); FromSlice(data, 2, 3) has two. The dtype is
// that of T. The shape must hold exactly len(data) elements.
func FromSlice[T Element](data []T, shape ...int) *Array {
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	d := dtypeOf[T]()
	n, err := checkShape(d, shape)
	if err == nil && n != len(data) {
		err = fmt.Errorf("the shape %s holds %d elements, the slice has %d", shapeText(shape), n, len(data))
	}
	if err != nil {
		return invalid(shapeError("FromSlice", err, []DType{d}, slices.Clone(shape)))
	}
	return newLeaf("FromSlice", unsafe.Pointer(unsafe.SliceData(data)), shape, d)
}

// Scalar makes an array without axes.
func Scalar[T Element](value T) *Array {
	return newLeaf("Scalar", unsafe.Pointer(&value), nil, dtypeOf[T]())
}

func newLeaf(op string, data unsafe.Pointer, shape []int, d DType) *Array {
	if err := Check(); err != nil {
		return invalid(opError(op, err))
	}
	if data == nil {
		// An empty array: MLX copies nothing, but wants an address.
		data = unsafe.Pointer(&emptyData)
	}
	dims := cShape(shape)
	if n, err := checkShape(d, shape); err == nil && n*d.Size() >= minPacedBytes {
		defer paceGC()
	}
	a := wrap(op, C.mlxg_array_new(data, unsafe.SliceData(dims), C.int(len(shape)), C.int(d.c())))
	a.own = true
	return a
}

// newUnfilledLeaf makes an array whose elements, in row-major order, the caller writes to data
// before it hands the array on. The shape has passed checkShape.
func newUnfilledLeaf(op string, shape []int, d DType) (a *Array, data []byte) {
	if err := Check(); err != nil {
		return invalid(opError(op, err)), nil
	}
	dims := cShape(shape)
	var p unsafe.Pointer
	a = wrap(op, C.mlxg_array_unfilled(unsafe.SliceData(dims), C.int(len(shape)), C.int(d.c()), &p))
	if a.Err() != nil {
		return a, nil
	}
	a.own = true
	if a.NBytes() >= minPacedBytes {
		paceGC()
	}
	return a, unsafe.Slice((*byte)(p), a.NBytes())
}

var emptyData [16]byte

// maxBytes is the address space of today's processors. MLX counts elements in 64
// bits without looking for overflow.
const maxBytes = 1 << 47

// checkShape returns the number of elements, or an error if an axis is negative,
// too long for MLX's 32 bits, or all of them together for any memory.
func checkShape(d DType, shape []int) (int, error) {
	n := 1
	for _, axis := range shape {
		if axis < 0 {
			return 0, fmt.Errorf("the shape %s has a negative axis", shapeText(shape))
		}
		if axis > math.MaxInt32 {
			return 0, fmt.Errorf("the shape %s has an axis above 2³¹−1", shapeText(shape))
		}
		if axis != 0 && n > maxBytes/d.Size()/axis {
			return 0, fmt.Errorf("the shape %s holds more elements than memory can", shapeText(shape))
		}
		n *= axis
	}
	return n, nil
}

// checkNew checks the dtype and shape of an array to be made.
func checkNew(d DType, shape []int) error {
	if !d.valid() {
		return fmt.Errorf("the dtype %v is invalid", d)
	}
	_, err := checkShape(d, shape)
	return err
}

// cShape converts a shape that checkShape has passed. The result is never empty: C
// gets an address.
func cShape(shape []int) []C.int {
	out := make([]C.int, max(len(shape), 1))
	for i, n := range shape {
		out[i] = C.int(n)
	}
	return out
}

// cInts converts what was not checked: axes, positions. The result is never empty: C gets an address.
func cInts(v []int) ([]C.int, error) {
	if err := check32(v...); err != nil {
		return nil, err
	}
	return cShape(v), nil
}

// FromSliceNoCopy makes an array of the elements of data without a copy of them, in row-major order,
// of a shape that holds exactly len(data) elements; without one it has one axis. For large
// data that a program has in memory anyway, such as a file that it mapped.
//
// From here on nobody may write to data, until the array and all that was made of it are
// gone: MLX computes when it sees fit, and views are taken of views. MLX does not write to
// it. data is kept alive and in its place as long as MLX needs it; memory that is not the
// Go heap's must be kept by the caller.
//
// Where MLX has a GPU, it copies the elements unless the GPU can read the memory where it
// is, which Metal can if data begins and ends at pages of the system.
func FromSliceNoCopy[T Element](data []T, shape ...int) *Array {
	const op = "FromSliceNoCopy"
	if len(data) == 0 {
		return FromSlice(data, shape...)
	}
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	d := dtypeOf[T]()
	n, err := checkShape(d, shape)
	if err == nil && n != len(data) {
		err = fmt.Errorf("the shape %s holds %d elements, the slice has %d", shapeText(shape), n, len(data))
	}
	if err == nil {
		err = Check()
	}
	if err != nil {
		return invalid(shapeError(op, err, []DType{d}, slices.Clone(shape)))
	}
	releaseFunctions() // and earlier data, where nothing but this is ever called
	pin := new(runtime.Pinner)
	pin.Pin(&data[0])
	dims := cShape(shape)
	return wrap(op, C.mlxg_array_view(unsafe.Pointer(&data[0]), &dims[0], C.int(len(shape)), C.int(d.c()), register(pin)))
}
