// Package compare checks our gradients against MLX's built-in gradients and a float64 oracle.
//
// An [Op] declares one operation: its cases, the oracle, our function and MLX's. [Run] differentiates both functions
// at the same inputs and cotangents, measures both results against the oracle, and judges ours by one accuracy rule
// (package internal/accuracy). MLX's gradient is measured like ours; it is not the truth. If it fails, the report says
// so and ours is still judged.
//
// [Sample] chooses a part of the cases that reaches every kernel; [CompileKernels] compiles kernels before a run. The
// operations of this project are in package suite, their timings in package bench.
package compare
