// Package quickcompile lets tests compile the kernels of the host executor with little optimization, which takes less
// than half of the time.
//
// The results have the same bits: the compiler flags forbid changes of floating-point operations at every optimization
// level. TestOptimizationKeepsBits in package ops checks this for every kernel.
package quickcompile

import "sync/atomic"

var enabled atomic.Bool

// Set selects little optimization, or the optimization that users get, which is the default.
func Set(quick bool) { enabled.Store(quick) }

// Enabled reports whether kernels are compiled with little optimization.
func Enabled() bool { return enabled.Load() }
