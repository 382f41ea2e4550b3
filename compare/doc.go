// Package compare holds gradients of ours against MLX's built-in ones and against a float64 oracle.
//
// An [Op] declares one operation: cases, the oracle, our function and MLX's. [Run] differentiates
// both functions at the same inputs and cotangents, measures both results against the oracle, and
// judges ours by one rule (package internal/accuracy). MLX is a peer that is measured too, not the
// truth; where its own gradient fails, the report says so and ours is still judged.
//
// [Sample] chooses a part of the cases that reaches every kernel; [CompileKernels] compiles kernels before a run.
//
// A new operation is one file that returns its Op, and its line in [Ops]; its float64 formulas go
// beside the others in package oracle.
package compare
