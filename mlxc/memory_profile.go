package mlxc

import (
	"runtime/pprof"
	"sync/atomic"
	"unsafe"
)

// liveArrays is the profile that ProfileArrays fills. Its values are handles: an *Array in the profile would never
// become unreachable.
var liveArrays = pprof.NewProfile("mlxgrad.arrays")

// profiling is the sampling interval, 0 for off. made counts arrays while profiling is on.
var profiling, made atomic.Int64

// ProfileArrays samples one of every n arrays made from now on into the runtime/pprof profile "mlxgrad.arrays", with
// the stack that made it. An array leaves the profile when it is freed: by Free, by its scope or by the garbage
// collector. The profile shows where the live arrays were made. With n = 1 it holds all arrays; n = 0, the default,
// stops sampling.
//
//	pprof.Lookup("mlxgrad.arrays").WriteTo(os.Stderr, 1)
func ProfileArrays(n int) { profiling.Store(int64(max(n, 0))) }

// profile adds a new array to the profile if it is sampled.
func (a *Array) profile() {
	if n := profiling.Load(); n > 0 && made.Add(1)%n == 0 {
		a.users.Store(profiledBit)
		const callers = 2 // this function and newArray
		liveArrays.Add(a.ctx, callers)
	}
}

// unprofile removes a handle, before MLX reuses its address.
func unprofile(ctx unsafe.Pointer) { liveArrays.Remove(ctx) }
