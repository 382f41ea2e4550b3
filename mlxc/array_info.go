package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"
)

// Err returns the error that the array carries, ErrFreed if it was freed, or nil.
func (a *Array) Err() error {
	if a != nil && a.users.Load()&freedBit == 0 {
		return nil
	}
	_, err := a.acquire()
	if err == nil {
		a.release()
	}
	return err
}

// description is the metadata of an array.
type description struct {
	shape []int
	size  int
	dtype DType
	axes  [4]int // storage for shape, if at most 4 axes

	passed atomic.Pointer[any] // the key of the last check that succeeded; see CheckOnce
}

var noInfo = &description{dtype: Invalid}

// info returns the metadata of a valid array, and noInfo for an invalid one.
func (a *Array) info() *description {
	if a != nil && a.users.Load()&freedBit == 0 {
		if d := a.description.Load(); d != nil {
			return d
		}
	}
	ctx, err := a.acquire()
	if err != nil {
		return noInfo
	}
	defer a.release()
	d := a.description.Load()
	if d == nil {
		i := C.mlxg_array_info(handleWord(ctx))
		d = &description{size: int(i.size), dtype: dtypeFromC(int(i.dtype))}
		d.shape = appendInts(d.axes[:0], i)
		a.description.Store(d)
	}
	return d
}

// Shape returns the size of every axis. The caller owns the slice. It is empty for a scalar and nil for an invalid
// array.
func (a *Array) Shape() []int { return slices.Clone(a.info().shape) }

func appendInts(shape []int, i C.mlxg_info) []int {
	for _, n := range unsafe.Slice(i.shape, i.ndim) {
		shape = append(shape, int(n))
	}
	return shape
}

// shapeOf returns the shape of a handle that the caller holds.
func shapeOf(ctx unsafe.Pointer) []int { return appendInts(nil, C.mlxg_array_info(handleWord(ctx))) }

// Dim returns the size of an axis; a negative axis counts from the end. It returns 0 if the axis does not exist or the
// array is invalid.
func (a *Array) Dim(axis int) int {
	shape := a.info().shape
	if axis < 0 {
		axis += len(shape)
	}
	if axis < 0 || axis >= len(shape) {
		return 0
	}
	return shape[axis]
}

// axis returns the non-negative number of an axis. It returns an error if the axis does not exist.
func (a *Array) axis(axis int) (int, error) {
	n := a.NDim()
	if axis < -n || axis >= n {
		return 0, fmt.Errorf("there is no axis %d: the array has %d axes", axis, n)
	}
	return (axis + n) % n, nil
}

// NDim returns the number of axes.
func (a *Array) NDim() int { return len(a.info().shape) }

// Size returns the number of elements.
func (a *Array) Size() int { return a.info().size }

// DType returns the element type.
func (a *Array) DType() DType { return a.info().dtype }

// NBytes returns the size of the elements in bytes: Size times the size of DType.
func (a *Array) NBytes() int { return a.Size() * a.DType().Size() }

// CheckOnce returns the error of check, which reads elements of the array. Elements never change, so CheckOnce returns
// nil without a call if the last check of the array that succeeded had an equal key. Keys must be comparable. On a CUDA
// device, a kernel that reads elements from host memory moves their pages to the device, and a check moves them back,
// so repeated checks would be slow.
//
// It is for packages that build operations.
func (a *Array) CheckOnce(key any, check func() error) error {
	d := a.info()
	if d.hasPassed(key) {
		return nil
	}
	err := check()
	if err == nil {
		d.pass(key)
	}
	return err
}

// hasPassed reports whether the last check that succeeded had an equal key.
func (d *description) hasPassed(key any) bool {
	last := d.passed.Load()
	return last != nil && *last == key
}

// pass records the key of a check that succeeded.
func (d *description) pass(key any) {
	if d != noInfo {
		d.passed.Store(&key)
	}
}
