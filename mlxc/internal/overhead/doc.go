//go:build mlxheaders

// Package overhead holds C loops over mlx-c that create and free each handle, as an ideal binding would. The benchmark
// compares package mlxc with them. They are not in the test because a test file cannot use cgo.
//
//	./build.sh bench overhead
package overhead

/*
#cgo CFLAGS: -I${SRCDIR}/../../../third_party/mlx-c/install/include
#cgo LDFLAGS: -L${SRCDIR}/../../../third_party/mlx-c/install/lib -L${SRCDIR}/../../../third_party/mlx-c/install/mlx/lib -lmlxc -lmlx
#cgo LDFLAGS: -Wl,-rpath,${SRCDIR}/../../../third_party/mlx-c/install/lib -Wl,-rpath,${SRCDIR}/../../../third_party/mlx-c/install/mlx/lib
#include "loops.h"
*/
import "C"

import (
	"fmt"
	"runtime"
)

// Add builds n sums of two vectors of 8 elements and evaluates none.
func Add(n int) error {
	return onThread(func() C.int { return C.overhead_add(C.size_t(n)) })
}

// Chain builds a chain of ops sums and evaluates its end, n times.
func Chain(n, ops int) error {
	return onThread(func() C.int { return C.overhead_chain(C.size_t(n), C.size_t(ops)) })
}

// Step builds the value and both gradients of the sum of an RMSNorm of 8 rows of 64 elements, n times, and evaluates
// them if eval is set.
func Step(n int, eval bool) error {
	return onThread(func() C.int { return C.overhead_step(C.size_t(n), C.bool(eval)) })
}

// onThread runs a C loop on one thread, because arrays must be evaluated on the thread that made them.
func onThread(loop func() C.int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if rc := loop(); rc != 0 {
		return fmt.Errorf("a call of mlx-c failed with status %d", rc)
	}
	return nil
}
