//go:build mlxcgc

package mlxc

import "runtime"

// forceGC runs the garbage collector while a call holds a handle. If the call does not keep the array alive until its
// end, the array is freed during the call, and the test fails. The build tag mlxcgc is for such tests.
func forceGC() {
	runtime.GC()
	runtime.Gosched() // lets the cleanups run
}
