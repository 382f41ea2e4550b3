package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"
)

// View makes an array of the elements of data without a copy of them, in row-major order,
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
func View[T Element](data []T, shape ...int) *Array {
	const op = "View"
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
	onSoundThread(func() { e = C.mlxg_strides(ctx, &c[0]) })
	if e != nil {
		return nil, opError(op, takeText(e), a)
	}
	strides := make([]int, len(c)-1)
	for i := range strides {
		strides[i] = int(c[i])
	}
	return strides, nil
}
