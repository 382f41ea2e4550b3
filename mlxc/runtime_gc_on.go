//go:build mlxcgc

package mlxc

import "runtime"

// collect collects garbage while a call holds a handle: an array that the call forgot to
// keep alive until its end is then freed under its hands. That is what the tag mlxcgc is
// for, and all that it does.
func forceGC() {
	runtime.GC()
	runtime.Gosched() // to the cleanups
}
