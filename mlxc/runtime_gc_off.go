//go:build !mlxcgc

package mlxc

// collect is for a build with the tag mlxcgc.
func forceGC() {}
