package mlxc

// #include "mlxg.h"
import "C"

// Figures of MLX's allocator, in bytes, for the whole process.

// ActiveMemory is what live arrays hold.
func ActiveMemory() int {
	return memory(func() C.size_t { return C.mlxg_active_memory() })
}

// PeakMemory is the largest ActiveMemory since the start or ResetPeakMemory.
func PeakMemory() int {
	return memory(func() C.size_t { return C.mlxg_peak_memory() })
}

// ResetPeakMemory makes the current ActiveMemory the peak.
func ResetPeakMemory() { C.mlxg_reset_peak_memory() }

// CacheMemory is what MLX keeps of freed buffers for reuse.
func CacheMemory() int {
	return memory(func() C.size_t { return C.mlxg_cache_memory() })
}

// ClearCache gives the cached buffers back to the system.
func ClearCache() { C.mlxg_clear_cache() }

// memory is a figure of the allocator, 0 where MLX cannot be used.
func memory(figure func() C.size_t) int {
	if Check() != nil {
		return 0
	}
	return int(figure())
}
