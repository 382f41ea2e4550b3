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

// FromSlice makes an array with a copy of data in row-major order. The dtype follows from T. Without a shape, the array
// has one axis of len(data); FromSlice(data, 2, 3) has two axes. The shape must hold exactly len(data) elements.
func FromSlice[T Element](data []T, shape ...int) *Array {
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	d := dtypeOf[T]()
	if err := checkSlice(d, shape, len(data)); err != nil {
		return invalid(shapeError("FromSlice", err, []DType{d}, slices.Clone(shape)))
	}
	return newLeaf("FromSlice", unsafe.Pointer(unsafe.SliceData(data)), shape, d)
}

// Scalar makes an array without axes.
func Scalar[T Element](value T) *Array {
	return newLeaf("Scalar", unsafe.Pointer(&value), nil, dtypeOf[T]())
}

// newLeaf makes an array with a copy of the elements at data. The shape has passed checkShape. data may be nil for an
// empty array.
func newLeaf(op string, data unsafe.Pointer, shape []int, d DType) *Array {
	if err := Check(); err != nil {
		return invalid(opError(op, err))
	}
	if data == nil {
		// MLX copies nothing for an empty array, but requires an address.
		data = unsafe.Pointer(&emptyData)
	}
	dims := cShape(shape)
	if n, err := checkShape(d, shape); err == nil && n*d.Size() >= minPacedBytes {
		defer paceGC()
	}
	a := wrap(op, C.mlxg_array_new(data, unsafe.SliceData(dims), C.int(len(shape)), C.int(d.c())))
	a.hostBacked = true
	return a
}

// newUnfilledLeaf makes an array with undefined elements. The caller writes them to data, in row-major order, before
// anything else uses the array. The shape has passed checkShape.
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
	a.hostBacked = true
	if a.NBytes() >= minPacedBytes {
		paceGC()
	}
	return a, unsafe.Slice((*byte)(p), a.NBytes())
}

var emptyData [16]byte

// maxBytes is the address space of current processors. MLX counts elements in 64 bits without checking for overflow
// (fault size-overflow; docs/mlx-faults.md lists the faults of MLX).
const maxBytes = 1 << 47

// checkShape returns the number of elements. It returns an error if an axis is negative or exceeds 2³¹−1, or if the
// elements exceed the address space.
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
			return 0, fmt.Errorf("the shape %s exceeds the address space", shapeText(shape))
		}
		n *= axis
	}
	return n, nil
}

// checkSlice returns an error unless the shape passes checkShape and holds n elements.
func checkSlice(d DType, shape []int, n int) error {
	size, err := checkShape(d, shape)
	if err == nil && size != n {
		err = fmt.Errorf("the shape %s holds %d elements, the slice has %d", shapeText(shape), size, n)
	}
	return err
}

// checkNew checks the dtype and the shape of a new array.
func checkNew(d DType, shape []int) error {
	if !d.valid() {
		return fmt.Errorf("the dtype %v is invalid", d)
	}
	_, err := checkShape(d, shape)
	return err
}

// cShape converts a shape that has passed checkShape. The result is never empty: C needs an address.
func cShape(shape []int) []C.int {
	out := make([]C.int, max(len(shape), 1))
	for i, n := range shape {
		out[i] = C.int(n)
	}
	return out
}

// cInts converts unchecked integers, such as axes. It returns an error if one exceeds 32 bits. The result is never
// empty: C needs an address.
func cInts(v []int) ([]C.int, error) {
	if err := check32(v...); err != nil {
		return nil, err
	}
	return cShape(v), nil
}

// FromSliceNoCopy makes an array that uses the elements of data without copying them, in row-major order. The shape
// must hold exactly len(data) elements; without a shape, the array has one axis. It is meant for large data that is
// already in memory, such as a mapped file.
//
// The program must not write to data until the array, and every array made from it, is freed: MLX computes lazily, and
// arrays may share the memory. MLX does not write to data. Memory of the Go heap stays alive and in place as long as
// MLX needs it. Other memory, such as a mapping, must stay valid as long; the caller ensures that.
//
// With a GPU, MLX copies the elements unless the GPU can read the memory in place. Metal can if data begins and ends at
// page boundaries.
func FromSliceNoCopy[T Element](data []T, shape ...int) *Array {
	const op = "FromSliceNoCopy"
	if len(data) == 0 {
		return FromSlice(data, shape...)
	}
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	d := dtypeOf[T]()
	err := checkSlice(d, shape, len(data))
	if err == nil {
		err = Check()
	}
	if err != nil {
		return invalid(shapeError(op, err, []DType{d}, slices.Clone(shape)))
	}
	releaseFunctions() // unpins data of earlier arrays, even if the program calls nothing else
	pin := new(runtime.Pinner)
	pin.Pin(&data[0])
	dims := cShape(shape)
	return wrap(op, C.mlxg_array_view(unsafe.Pointer(&data[0]), &dims[0], C.int(len(shape)), C.int(d.c()),
		register(pin)))
}
