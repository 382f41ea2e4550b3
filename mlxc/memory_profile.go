package mlxc

import (
	"runtime/pprof"
	"sync/atomic"
	"unsafe"
)

// liveArrays is the profile that ProfileArrays fills. Its values are handles: an *Array in
// it would never become unreachable.
var liveArrays = pprof.NewProfile("mlxgrad.arrays")

// profiling is how many arrays there are to one that is noted, 0 if none is; made counts
// them.
var profiling, made atomic.Int64

// ProfileArrays notes one of every n arrays that are made from now on, with the stack
// that made it, in the profile "mlxgrad.arrays" of runtime/pprof, until it is freed, by
// Free, its scope or the collector. So the profile tells where the arrays that are alive
// come from; to have them all, n is 1. With 0, which is the default, no more are noted.
//
//	pprof.Lookup("mlxgrad.arrays").WriteTo(os.Stderr, 1)
func ProfileArrays(n int) { profiling.Store(int64(max(n, 0))) }

// profile notes a new array if it is its turn.
func (a *Array) profile() {
	if n := profiling.Load(); n > 0 && made.Add(1)%n == 0 {
		a.users.Store(profiledBit)
		const callers = 2 // this function and newArray
		liveArrays.Add(a.ctx, callers)
	}
}

// unprofile forgets a handle before MLX can give its address to another.
func unprofile(ctx unsafe.Pointer) { liveArrays.Remove(ctx) }
