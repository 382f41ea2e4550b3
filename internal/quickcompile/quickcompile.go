// Package quickcompile lets tests compile the kernels of the host executor with little optimization, which takes a
// third of the time.
//
// The results have the same bits: the flags of kernels permit no change of floating-point operations at any level of
// optimization. TestOptimizationKeepsBits in package ops holds every kernel to that.
package quickcompile

import "sync/atomic"

var enabled atomic.Bool

// Set chooses between little optimization and that of users, the default.
func Set(quick bool) { enabled.Store(quick) }

// Enabled reports whether kernels are compiled with little optimization.
func Enabled() bool { return enabled.Load() }
