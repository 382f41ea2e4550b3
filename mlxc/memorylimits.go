package mlxc

/*
#include "mlxg.h"

#ifndef MLXG_NOT_SET_UP
typedef int (*limit_fn)(size_t*, size_t);
static char* set_limit(limit_fn f, size_t* previous, size_t limit) {
  return mlxg_end_status(f(previous, limit));
}
#endif
*/
import "C"

import "fmt"

// Limits of MLX's allocator, in bytes, for the whole process.

// MemoryLimit is the limit that SetMemoryLimit sets.
func MemoryLimit() int {
	var n C.size_t
	C.mlx_get_memory_limit(&n)
	return int(n)
}

// SetMemoryLimit sets how much memory MLX tries to stay below while it evaluates, and
// returns the limit before. It is no hard bound: where more is needed, MLX first gives
// back what it keeps for reuse, then waits for work that is under way, then goes beyond
// it. At the start it is four fifths of the machine's memory on a CPU; on a GPU it goes by
// what the device recommends.
func SetMemoryLimit(bytes int) (previous int, err error) {
	return setLimit("SetMemoryLimit", C.limit_fn(C.mlx_set_memory_limit), bytes)
}

// SetCacheLimit sets how much freed memory MLX keeps for reuse, and returns the limit
// before; 0 keeps nothing. What is above it is given back at later allocations. At the
// start it is 32 MiB on a CPU, and the memory limit on a GPU.
func SetCacheLimit(bytes int) (previous int, err error) {
	return setLimit("SetCacheLimit", C.limit_fn(C.mlx_set_cache_limit), bytes)
}

// SetWiredLimit sets how much memory Metal keeps resident, and returns the limit before,
// which is 0 at the start. More than the system allows is an error. Elsewhere than on a
// Mac it does nothing, and the limit is always 0.
func SetWiredLimit(bytes int) (previous int, err error) {
	return setLimit("SetWiredLimit", C.limit_fn(C.mlx_set_wired_limit), bytes)
}

func setLimit(op string, f C.limit_fn, bytes int) (previous int, err error) {
	if initError != nil {
		return 0, opError(op, initError)
	}
	if bytes < 0 {
		return 0, opError(op, fmt.Errorf("the limit %d is negative", bytes))
	}
	var n C.size_t
	if e := C.set_limit(f, &n, C.size_t(bytes)); e != nil {
		return 0, opError(op, takeText(e))
	}
	return int(n), nil
}
