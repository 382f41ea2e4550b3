// Package compare checks gradients against a float64 reference and MLX's built-in gradients.
//
// [Gradients] checks a function of any program in a Go test. It chooses random and extreme inputs, and prints a
// small failing input with the command that runs it again:
//
//	func TestSilu(t *testing.T) {
//		compare.Gradients(t, silu, compare.Reference{Forward: silu64}, compare.Case{
//			Inputs: []compare.Input{{Name: "x", Dims: []string{"rows", "d"}}},
//		})
//	}
//
// [Run] compares operations at fixed inputs and returns a report. An [Op] declares one operation: its cases, the oracle
// (its float64 reference), our function and MLX's. Run differentiates both functions at the same inputs and cotangents,
// measures both results against the oracle, and judges ours by one accuracy rule (docs/accuracy.md). MLX's gradient is
// measured like ours; it is not the truth. If it fails, the report says so and ours is still judged.
//
// [Sample] chooses a part of the cases that reaches every kernel; [CompileKernels] compiles kernels before a run.
// Package suite holds the operations of this project; package bench times them.
package compare
