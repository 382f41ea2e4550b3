package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"math"
	"unsafe"
)

//go:generate go run ./internal/generate

// What the generated calls have in common.

// word passes a handle as a number: cgo looks at each pointer that it passes, for
// pointers of Go's, and that takes longer than the rest of what Go does for an operand.
func handleWord(handle unsafe.Pointer) C.uintptr_t { return C.uintptr_t(uintptr(handle)) }

// acquireOptional holds an array that may be nil, for which the handle is nil.
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

// check32 says which of the numbers MLX's 32 bits cannot hold.
func check32(v ...int) error {
	for _, x := range v {
		if x < math.MinInt32 || x > math.MaxInt32 {
			return fmt.Errorf("%d is beyond MLX's 32 bits", x)
		}
	}
	return nil
}

// cLongs converts positions of 64 bits. The result is never empty: C gets an address.
func cLongs(v []int) []C.int64_t {
	out := make([]C.int64_t, max(len(v), 1))
	for i, x := range v {
		out[i] = C.int64_t(x)
	}
	return out
}

func errDType(d DType) error { return fmt.Errorf("the dtype %v is invalid", d) }

func errNegative(n int) error { return fmt.Errorf("%d is negative", n) }

// pair takes the two results of a call apart; if it failed, both carry the error.
func pair(results []*Array, err error) (first, second *Array) {
	if err != nil {
		results = invalidArrays(2, err)
	}
	return results[0], results[1]
}

// maxInvalid limits how many arrays stand for the results of a call that failed: a wrong
// number of parts may be any number.
const maxInvalid = 1024

// orInvalid gives the results of a call, or n arrays that carry its error.
func orInvalid(n int) func(results []*Array, err error) []*Array {
	return func(results []*Array, err error) []*Array {
		if err != nil {
			return invalidArrays(min(n, maxInvalid), err)
		}
		return results
	}
}

// allAxes are the given axes, or all of the array's if none are given.
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

// zerosIfEmpty is for operations that MLX's CPU backend ends the process over if there
// are no elements: it divides by their number. It gives the array, or one like it
// that needs no computation.
func (a *Array) zerosIfEmpty() *Array {
	if a.Err() != nil || a.Size() > 0 {
		return a
	}
	defer a.Free()
	return Zeros(a.DType(), a.Shape()...)
}
