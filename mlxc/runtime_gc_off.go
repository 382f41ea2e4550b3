//go:build !mlxcgc

package mlxc

// forceGC does nothing without the build tag mlxcgc.
func forceGC() {}
