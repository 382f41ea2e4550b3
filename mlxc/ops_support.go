package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"math"
	"unsafe"
)

//go:generate go run ./internal/generate

// Helpers of the generated calls.

// handleWord passes a handle to C as a number. cgo checks every pointer argument for pointers to Go memory, which takes
// longer than the rest of Go's work for an operand.
func handleWord(handle unsafe.Pointer) C.uintptr_t { return C.uintptr_t(uintptr(handle)) }

// acquireOptional is acquire for an array that may be nil, whose handle is nil.
func acquireOptional(a *Array) (unsafe.Pointer, error) {
	if a == nil {
		return nil, nil
	}
	return a.acquire()
}

func releaseOptional(a *Array) {
	if a != nil {
		a.release()
	}
}

// check32 returns an error for the first number that does not fit MLX's 32 bits.
func check32(v ...int) error {
	for _, x := range v {
		if x < math.MinInt32 || x > math.MaxInt32 {
			return fmt.Errorf("%d does not fit MLX's 32 bits", x)
		}
	}
	return nil
}

// cLongs converts integers to 64 bits. The result is never empty: C needs an address.
func cLongs(v []int) []C.int64_t {
	out := make([]C.int64_t, max(len(v), 1))
	for i, x := range v {
		out[i] = C.int64_t(x)
	}
	return out
}

func errDType(d DType) error { return fmt.Errorf("the dtype %v is invalid", d) }

func errNegative(n int) error { return fmt.Errorf("%d is negative", n) }

// pair returns the two results of a call; if it failed, both carry the error.
func pair(results []*Array, err error) (first, second *Array) {
	if err != nil {
		results = invalidArrays(2, err)
	}
	return results[0], results[1]
}

// maxInvalid limits the number of invalid arrays that a failed call returns: an invalid number of parts may be large.
const maxInvalid = 1024

// orInvalid returns a function that returns the results of a call, or n invalid arrays with its error.
func orInvalid(n int) func(results []*Array, err error) []*Array {
	return func(results []*Array, err error) []*Array {
		if err != nil {
			return invalidArrays(min(n, maxInvalid), err)
		}
		return results
	}
}

// allAxes returns the given axes, or all axes if none are given.
func (a *Array) allAxes(axes []int) []int {
	if len(axes) > 0 {
		return axes
	}
	all := make([]int, a.NDim())
	for i := range all {
		all[i] = i
	}
	return all
}

// zerosIfEmpty returns the array, or zeros of its shape and dtype if it has no elements. It is for operations whose CPU
// implementation in MLX divides by the number of elements and ends the process (faults sort-empty, cumsum-empty,
// permutation-empty and quantized-matmul-empty).
func (a *Array) zerosIfEmpty() *Array {
	if a.Err() != nil || a.Size() > 0 {
		return a
	}
	defer a.Free()
	return Zeros(a.DType(), a.Shape()...)
}
