// Package mlxc is MLX for Go. It calls MLX through Apple's C interface mlx-c and needs no Python.
//
//	x := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
//	y := x.MatMul(x).Exp()
//	v, err := mlxc.ToSlice[float32](y)
//
// # Arrays are lazy
//
// An operation does not compute: it adds a node to a graph and returns at once. Eval, ToSlice, Item and String
// compute; AsyncEval starts a computation and returns. A loop should evaluate in every iteration, because its graph
// grows until then. Arrays are immutable. Their dtypes are MLX's dtypes. The Go type for float16 is Float16 of package
// github.com/x448/float16. The Go type for bfloat16 is BFloat16 of package mlxc/bfloat16.
//
// # Operations
//
// These rules hold for each kind of operation:
//
//   - Element-wise operations broadcast their operands to a common shape and promote them to a common dtype, by MLX's
//     rules. Shapes that do not broadcast are an error. Exp, Log, Sin, Sqrt and similar functions compute integers and
//     booleans as float32. Comparisons and logic return booleans: NaN is not equal to any value, and every value
//     other than 0 is true. Bit operations take integers and booleans.
//   - Scalar makes an array, and its dtype takes part in promotion: Scalar[float32](2) converts a float16 array to
//     float32. AddScalar and similar methods take Go numbers; see Scalars below.
//   - Reductions, such as Sum, reduce the given axes, or all axes if none are given, and remove them. Variants with
//     KeepDims keep them at size 1. An axis that does not exist, or is repeated, is an error.
//   - Axes count from 0; negative axes count from the end. NaN sorts last.
//   - Products such as MatMul take floating-point and complex operands. Integers are an error, except in Outer, Kron
//     and VecDot: convert with AsType.
//   - Linear algebra works on the last two axes; earlier axes are a batch. It takes float32 and float64; some
//     functions also take complex64. MLX has gradients only for Norm, Cross, the right-hand side of Solve and
//     SolveTriangular, Det and SlogDet of matrices with at most 3 rows, and NormOrd without singular values.
//   - Config structs, such as ConvConfig, hold options. The zero value gives the usual operation.
//   - Arguments come in one order: arrays, parameters, axes. A random key comes first. A dtype comes before a
//     shape. Variadic lists come last.
//
// # Scalars
//
// AddScalar, MulScalar, LessScalar and similar methods, and Clip, take a Go scalar s: a bool, a number of any Go type,
// a float16.Float16 or a bfloat16.BFloat16. As in Python, the kind of s (bool, integer, float or complex), and not its
// size, determines its dtype in an operation with an array a. In the table, "a's" is the dtype of a:
//
//	s       | bool a    | integer a | float a   | complex64 a
//	bool    | bool      | a's       | a's       | complex64
//	integer | int32     | a's       | a's       | complex64
//	float   | float32   | float32   | a's       | complex64
//	complex | complex64 | complex64 | complex64 | complex64
//
// So 2 keeps integers exact and 2.0 converts them: an untyped Go constant is an integer if it is written as one.
// Comparisons return booleans, and divisions of integers return float32. It is an error if s is an integer that the
// dtype cannot hold, even for uint64 and bool, where Python wraps around, or if s has another type.
//
// # Indexing
//
// Index selects elements by a list with one Index per axis: At selects one position, Range and Step select a slice,
// and IDs selects the positions listed in an integer array. All, Rest and NewAxis work as in numpy. SetAt, AddAt and
// similar methods return a copy with the selected elements changed.
//
//	a.Index(mlxc.At(0), mlxc.Range(1, mlxc.End), mlxc.IDs(ids)) // a[0, 1:, ids]
//
// MLX does not check ids. This package returns an error if an id that is already computed is out of range. It clamps
// other ids to the valid range; see Array.Take.
//
// # Random numbers
//
// Random numbers are a function of a key: equal keys give equal numbers on every device. RandomKey makes a key from a
// number, and RandomSplit derives several from one. A nil key stands for the next key of the process's sequence, which
// RandomSeed restarts. After RandomSeed(n), the sequence gives the numbers that Python draws after mx.random.seed(n).
// In a function under Compile or Vmap, pass the key as an argument: a nil key becomes a constant there. If Checkpoint
// runs a function again, the function draws the same numbers.
//
// # Devices and streams
//
// Operations run on the default device, the GPU if there is one. WithDevice and WithStream change the device or the
// stream for the operations that a function calls, on the calling goroutine only. Work on one stream runs in order;
// MLX orders work on different streams by data dependencies.
//
// MLX factorizes matrices on CPU streams only. If the default device is a GPU, call SVD, QR, Inv, Solve and similar
// functions inside WithDevice(CPU, …); on a GPU stream they return an error. Float64 needs a CPU stream,
// too.
//
// # Errors are values
//
// An operation returns arrays. If the operation fails, the arrays are invalid and carry the error; operations on them
// pass the error on. So formulas need no checks. Functions that leave the graph, such as ToSlice, return the error:
//
//	y := x.MatMul(w).Add(b).Tanh()     // no checks
//	v, err := mlxc.ToSlice[float32](y) // the first error
//
// An *Error names the operation, the shapes and dtypes of its operands, and the line that called this package. Nothing
// in this package ends the process, but a fault of MLX on a CUDA device can; docs/h200 lists the known ones. MLX's
// exceptions become errors. If a Go function that MLX calls panics, the call that ran the function returns a
// *PanicError.
//
// Some errors appear only at evaluation: a singular matrix, a kernel that does not compile, a lost process of a
// distributed group. The failed array, and every array that depends on it, then returns the error at each later use.
// Other intermediate arrays of that evaluation may be marked as evaluated but hold undefined data: discard them. An
// error of AsyncEval is returned by reads and evaluations of the arrays that failed, and by Synchronize if no other
// call has returned it. An error of a CUDA device may be returned by any later evaluation.
//
// # Memory
//
// MLX owns the elements of arrays, outside the Go heap. There are three ways to release them: Free releases one array,
// WithScope and WithScopeErr release all arrays made in a function, and the garbage collector releases unreachable
// arrays. The collector is only a safety net, because it runs late: a loop that makes large arrays should use a scope
// per iteration, and a server a scope per request. The collector does not see MLX's memory, so this package starts it
// when that memory has doubled since the last collection, unless all arrays made since then belong to scopes.
//
// FromSlice copies; FromSliceNoCopy uses the elements in place. SetMemoryLimit and SetCacheLimit limit MLX's memory and
// its cache. ActiveMemory, PeakMemory and CacheMemory report the sizes. ProfileArrays shows where live arrays were
// made. With the build tag mlxcgc, every call runs the garbage collector, so that tests find handles that a call does
// not keep alive.
//
// # Transforms
//
// Transforms take and return functions of arrays (Func). A transform runs the function on placeholders for its
// arguments and treats captured arrays as constants.
//
//   - VJP and JVP compute products with the Jacobian. Grad and ValueAndGrad compute the gradient of a scalar. AsFunc
//     turns a gradient into a Func for another transform: Vmap for per-sample gradients, Grad for second derivatives.
//   - CustomVJP defines a function's gradient, and CustomFunction also its rules for JVP and Vmap. Checkpoint trades
//     time for memory.
//   - Vmap runs a function written for one element on a batch.
//   - Compile simplifies and fuses a function's graph. It traces the function once per signature (shapes, dtypes and
//     stream) and keeps the 64 most recently used traces.
//   - Export writes a function to a file, which Import reads, here or on another machine. A .mlxfn file is a program
//     that is not validated: import only files from trusted sources.
//
// # Goroutines and threads
//
// Any goroutine may use any array at any time. MLX itself binds arrays to threads and does not lock its graph. This
// package uses streams that every thread may use, and holds one process-wide lock while it builds or walks a graph. The
// lock is free while CPU streams compute. It is held while a function runs under a transform: such a function must not
// wait for another goroutine that uses this package.
//
// An evaluation cannot be canceled. A loop should check its context between evaluations. WithScope, WithDevice and
// WithStream apply to the calling goroutine, and not to goroutines that it starts.
//
// In a scope, and without contention, an operation costs a call into C, a handle and a lock in addition to MLX's own
// time. Measure it with ./build.sh bench overhead.
//
// # The end of a program
//
// A program for macOS calls Shutdown as its last act, before os.Exit or the return of main. There, Go ends a process
// through the C library, which destroys MLX's static objects while goroutines, cleanups and MLX's threads may still use
// them; the process then sometimes crashes. After Shutdown every operation returns ErrShutdown.
//
// # Packages below this one
//
// Package mlxio reads and writes safetensors, GGUF and NumPy files. Package distributed joins processes to groups.
// Package tree takes gradients with respect to structs, maps and slices of parameters. Package optim has SGD, AdamW,
// clipping and schedules.
//
// # For packages that build operations
//
// These declarations exist for packages, such as customkernels and ops of this module, that add operations. Other
// programs rarely need them:
//
//   - NewError and InvalidArray report errors as the operations of this package do.
//   - MetalKernel, CUDAKernel and HostFunction add custom kernels and C functions to the graph. CustomVJP defines their
//     gradient. Trace and WithPlaceholderGPU return the source that MLX generates for a Metal kernel, on any machine.
//   - IsTraced, Differentiating, IsReady and IsHostBacked report the state of an array or of the running transform.
//     TF32Enabled reports whether CUDA matrix products use TF32.
//   - After and AfterCompletion order parts of a graph to bound its memory.
//   - CheckOnce and FindOutside check the elements of arrays that the host can read.
//   - OutsideScopes makes arrays that outlive the caller's scope.
//
// # Relation to mlx-c
//
// The lowest layer of this package is generated from the headers of the pinned mlx-c. A test fails if a function of
// mlx-c is neither bound nor listed with the reason for its absence. The loaded libraries must have the pinned
// versions; otherwise every operation returns the error of Check.
//
// This package works around the faults of MLX that docs/mlx-faults.md lists. A comment of the form (fault NAME) in the
// source names an entry of that page.
package mlxc
