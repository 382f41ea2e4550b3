// Package mlxc is Apple's MLX for Go, through Apple's own C interface, mlx-c. No
// Python is needed, neither to build nor to run.
//
// # Arrays are lazy
//
// An operation does not compute: it adds a node to a graph and returns at once.
// Eval, or reading a value with ToSlice, Item or String, computes what is needed.
// Arrays are immutable. Their dtypes are MLX's; float16 is float16.Float16 of
// x448/float16, bfloat16 is that of the package beside this one.
//
// # Errors are values
//
// An operation returns one *Array. If it could not be built, the array is invalid
// and carries the error; operations on it pass the error on. So mathematics reads
// as such, and the error is returned by what leaves the graph:
//
//	y := x.MatMul(w).Add(b).Tanh() // no checks here
//	v, err := mlxc.ToSlice[float32](y) // the first thing that went wrong
//
// An *Error names the operation and the shapes and dtypes of its operands. This
// package does not end the process, and MLX's exceptions come back as errors. A panic in a Go function that MLX calls comes
// back as a *PanicError from the call that ran it.
//
// # Memory
//
// The elements of arrays are MLX's, not the Go heap's. Three ways give them back:
// Free for one array, WithScope for all that were made in a function, and the
// collector for what was forgotten. The last one is a net: it comes late, so a loop
// that makes large arrays wants a scope for each turn.
//
// # Transforms
//
// VJP, ValueAndGrad, CustomVJP, Checkpoint, Vmap and Compile take and give functions
// of arrays (Func). They run the function on stand-ins for the arguments; what it does
// to arrays that it captures instead counts as constant.
//
// # Goroutines, threads and streams
//
// Any goroutine may use any array, at any time. MLX itself binds arrays to threads
// and keeps its graph in plain memory; this package gives it streams that every
// thread may use, and holds one lock around whatever builds or walks a graph. While
// an evaluation on CPU streams computes, the lock is free. It is held while a
// function of arrays runs under a transform: such a function must not wait for
// another goroutine that uses this package. A lone goroutine pays some tens of
// nanoseconds an operation.
//
// Operations run on the default device, the GPU where there is one. WithDevice and
// WithStream change that for the operations that a function calls, and WithScope
// collects the arrays that it makes, on the calling goroutine only.
package mlxc
