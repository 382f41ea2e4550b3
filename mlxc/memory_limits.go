package mlxc

// #include "mlxg.h"
import "C"

import "fmt"

// Limits of MLX's allocator, in bytes, for the whole process.

// MemoryLimit is the limit that SetMemoryLimit sets.
func MemoryLimit() int {
	return memory(func() C.size_t { return C.mlxg_memory_limit() })
}

// SetMemoryLimit sets how much memory MLX tries to stay below while it evaluates, and
// returns the limit before. It is no hard bound: where more is needed, MLX first gives
// back what it keeps for reuse, then waits for work that is under way, then goes beyond
// it. At the start it is four fifths of the machine's memory on a CPU; on a GPU it goes by
// what the device recommends.
func SetMemoryLimit(bytes int) (previous int, err error) {
	return setLimit("SetMemoryLimit", C.MLXG_LIMIT_MEMORY, bytes)
}

// SetCacheLimit sets how much freed memory MLX keeps for reuse, and returns the limit
// before; 0 keeps nothing. What is above it is given back at later allocations. At the
// start it is 32 MiB on a CPU, and the memory limit on a GPU.
func SetCacheLimit(bytes int) (previous int, err error) {
	return setLimit("SetCacheLimit", C.MLXG_LIMIT_CACHE, bytes)
}

// SetWiredLimit sets how much memory Metal keeps resident, and returns the limit before,
// which is 0 at the start. More than the system allows is an error. Elsewhere than on a
// Mac it does nothing, and the limit is always 0.
func SetWiredLimit(bytes int) (previous int, err error) {
	return setLimit("SetWiredLimit", C.MLXG_LIMIT_WIRED, bytes)
}

func setLimit(op string, which C.int, bytes int) (previous int, err error) {
	if err := Check(); err != nil {
		return 0, opError(op, err)
	}
	if bytes < 0 {
		return 0, opError(op, fmt.Errorf("the limit %d is negative", bytes))
	}
	var n C.size_t
	if e := C.mlxg_set_limit(which, &n, C.size_t(bytes)); e != nil {
		return 0, opError(op, takeText(e))
	}
	return int(n), nil
}
