package mlxc

// #include "mlxg.h"
import "C"

import "fmt"

// These functions set limits of MLX's allocator, in bytes, for the whole process. A negative limit is an error.

// MemoryLimit returns the current memory limit, in bytes. See SetMemoryLimit.
func MemoryLimit() int {
	return memory(func() C.size_t { return C.mlxg_memory_limit() })
}

// SetMemoryLimit sets the memory that MLX tries to stay below during evaluation, and returns the previous limit. It is
// not a hard bound: if more is needed, MLX first releases cached buffers, then waits for running work, then exceeds the
// limit. On a CPU, the default is four fifths of the machine's memory. On a GPU, MLX derives it from the device's
// memory.
func SetMemoryLimit(bytes int) (previous int, err error) {
	return setLimit("SetMemoryLimit", C.MLXG_LIMIT_MEMORY, bytes)
}

// SetCacheLimit sets how much freed memory MLX keeps for reuse, and returns the previous limit. 0 keeps nothing. Memory
// above the limit is released at later allocations. On a GPU, the default is the memory limit. On a CPU, it is a quarter
// of the memory limit or, if that is less, of the memory that the process's control group may use. MLX's own default for
// CPUs, 32 MiB, makes operations on large arrays up to twice as slow: the system clears every page of a new array.
func SetCacheLimit(bytes int) (previous int, err error) {
	return setLimit("SetCacheLimit", C.MLXG_LIMIT_CACHE, bytes)
}

// SetWiredLimit sets how much memory Metal keeps resident, and returns the previous limit. The default is 0. A limit
// above the system's maximum is an error. On platforms other than macOS it has no effect, and the limit is always 0.
func SetWiredLimit(bytes int) (previous int, err error) {
	return setLimit("SetWiredLimit", C.MLXG_LIMIT_WIRED, bytes)
}

func setLimit(op string, which C.int, bytes int) (previous int, err error) {
	if err := Check(); err != nil {
		return 0, opError(op, err)
	}
	if bytes < 0 {
		return 0, opError(op, fmt.Errorf("the limit is %d bytes: it must be at least 0", bytes))
	}
	var n C.size_t
	if e := C.mlxg_set_limit(which, &n, C.size_t(bytes)); e != nil {
		return 0, opError(op, takeError(e))
	}
	return int(n), nil
}
