package mlxc

// #include "mlxg.h"
import "C"

// These functions report the state of MLX's allocator, in bytes, for the whole process. They return 0 if MLX cannot be
// used.

// ActiveMemory returns the memory that live arrays hold, in bytes.
func ActiveMemory() int {
	return memory(func() C.size_t { return C.mlxg_active_memory() })
}

// PeakMemory returns the maximum of ActiveMemory since the start or the last ResetPeakMemory, in bytes. Only
// allocations update it.
func PeakMemory() int {
	return memory(func() C.size_t { return C.mlxg_peak_memory() })
}

// ResetPeakMemory sets the peak to 0. The next allocation raises it to ActiveMemory.
func ResetPeakMemory() { C.mlxg_reset_peak_memory() }

// CacheMemory returns the size of the freed buffers that MLX keeps for reuse, in bytes.
func CacheMemory() int {
	return memory(func() C.size_t { return C.mlxg_cache_memory() })
}

// ClearCache returns the cached buffers to the system.
func ClearCache() { C.mlxg_clear_cache() }

// memory returns the result of read, or 0 if MLX cannot be used.
func memory(read func() C.size_t) int {
	if Check() != nil {
		return 0
	}
	return int(read())
}
