package mlxc

// #include "mlxg.h"
import "C"

// Figures of MLX's allocator, in bytes, for the whole process.

// ActiveMemory is what live arrays hold.
func ActiveMemory() int {
	var n C.size_t
	C.mlx_get_active_memory(&n)
	return int(n)
}

// PeakMemory is the largest ActiveMemory since the start or ResetPeakMemory.
func PeakMemory() int {
	var n C.size_t
	C.mlx_get_peak_memory(&n)
	return int(n)
}

// ResetPeakMemory makes the current ActiveMemory the peak.
func ResetPeakMemory() { C.mlx_reset_peak_memory() }

// CacheMemory is what MLX keeps of freed buffers for reuse.
func CacheMemory() int {
	var n C.size_t
	C.mlx_get_cache_memory(&n)
	return int(n)
}

// ClearCache gives the cached buffers back to the system.
func ClearCache() { C.mlx_clear_cache() }
