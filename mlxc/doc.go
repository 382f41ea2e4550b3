// Package mlxc is Apple's MLX for Go, through Apple's own C interface, mlx-c. No
// Python is needed, neither to build nor to run.
//
// # Arrays are lazy
//
// An operation does not compute: it adds a node to a graph and returns at once.
// Eval, or reading a value with ToSlice, Item or String, computes what is needed;
// AsyncEval starts to and returns. A loop should evaluate at every turn, or its graph
// grows. Arrays are immutable. Their dtypes are MLX's; float16 is float16.Float16 of
// x448/float16, bfloat16 is that of the package beside this one.
//
// # Operations
//
// What holds for all operations of a kind:
//
//   - Element by element: operands are broadcast to a common shape and promoted to a
//     common dtype, by MLX's rules, and are an error where they cannot. Exp, Log, Sin,
//     Sqrt and their like compute integers and booleans as float32. Comparisons and
//     logic give booleans; a NaN is equal to nothing, and all but 0 is true. Operations
//     on bits take integers and booleans.
//   - Scalar makes an array, whose dtype counts like any other: Scalar[float32](2) makes
//     float32 of a float16 array. AddScalar and its like take Go numbers: see Scalars below.
//   - Reductions, such as Sum, work over the axes that are named, or over all if none
//     are, and take them away; with KeepDims they stay, at size 1. An axis that is not
//     there, or is named twice, is an error.
//   - Axes count from 0, negative ones from the end. Sorting puts NaN last.
//   - Products such as MatMul take floating-point and complex operands; integers are an
//     error, except in Outer, Kron and VecDot: convert with AsType.
//   - Linear algebra works on the last two axes; those before are a batch. It takes
//     float32 and float64, in part complex64. MLX has gradients for Norm, Cross, Det and
//     SlogDet of up to 3 rows, the right-hand side of Solve and SolveTriangular, and
//     NormOrd where it needs no singular values, and for no others.
//   - Structs such as ConvConfig hold what an operation can do without; their zero value
//     is the usual operation.
//
// # Scalars
//
// AddScalar, MulScalar, LessScalar and their like, and Clip, take a Go scalar s: a bool or a
// number of any Go type, a float16.Float16 or a bfloat16.BFloat16. As in Python, the kind of s
// and not its size decides the dtype in which it takes part in an operation with a:
//
//	s       | bool a    | integer a | float a   | complex64 a
//	bool    | bool      | a's       | a's       | complex64
//	integer | int32     | a's       | a's       | complex64
//	float   | float32   | float32   | a's       | complex64
//	complex | complex64 | complex64 | complex64 | complex64
//
// So 2 keeps integers exact and 2.0 converts them: an untyped Go constant is an integer if it is
// written as one. Comparisons give booleans, and divisions of integers float32. It is an error if
// the dtype cannot hold an integer s, also where Python wraps around (uint64, bool), or if s has
// another type.
//
// # Devices and streams
//
// Operations run on the default device, the GPU where there is one. WithDevice and
// WithStream change that for the operations that a function calls, on the calling
// goroutine only. Work of one stream runs in order; MLX orders work of different
// streams by the data that flows between them.
//
// MLX factorises matrices on CPU streams only. Where the default is a GPU, call SVD,
// QR, Inv, Solve and their like inside WithDevice(CPU, …); on a GPU stream they are
// errors that say so. Float64 is for CPU streams too.
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
// An *Error names the operation, the shapes and dtypes of its operands, and the line of
// your source that called it. The error of an array keeps the line where it arose. This
// package does not end the process, and MLX's exceptions come back as errors. A panic
// in a Go function that MLX calls comes back as a *PanicError from the call that ran it.
//
// Some errors show at evaluation only: a singular matrix, a kernel that does not
// compile, a peer that is gone. The arrays that were asked for then fail at every later
// evaluation too. What they were computed from MLX takes for computed, with undefined
// elements: drop it, and go on from what was there before. The error of an AsyncEval comes
// from a later evaluation or read, of another array perhaps, or from Synchronize.
//
// MLX does not check the elements of ids. This package does where they are computed already,
// and limits them where they are not (see Array.Take).
//
// # Memory
//
// The elements of arrays are MLX's, not the Go heap's. Three ways give them back:
// Free for one array, WithScope and WithScopeErr for all that were made in a function,
// and the collector for what was forgotten. The last one is a net: it comes late, so a
// loop that makes large arrays wants a scope for each turn, as does each request of a
// server. As the collector cannot see MLX's memory, this package runs it when that has
// doubled.
//
// FromSlice copies; FromSliceNoCopy uses the elements where they are. SetMemoryLimit and
// SetCacheLimit bound what MLX takes and keeps, ActiveMemory, PeakMemory and
// CacheMemory tell what it has. ProfileArrays shows where the arrays that are alive
// were made. Built with -tags mlxcgc, every call collects garbage: so tests find a handle
// that is not kept alive for its call.
//
// # Indexing
//
// Index takes elements by a list with an Index for each axis: At one position, Range
// and Step a part, IDs those that an array names, with All, Rest and NewAxis as in
// numpy. SetAt, AddAt and their like return a copy with such elements changed.
//
//	a.Index(mlxc.At(0), mlxc.Range(1, mlxc.End), mlxc.IDs(ids)) // a[0, 1:, ids]
//
// # Random numbers
//
// What is drawn is a function of a key: equal keys give equal numbers, on every
// device. RandomKey makes one of a number, RandomSplit several of one. A nil key stands
// for the next of the process's own sequence, which RandomSeed begins anew: after
// RandomSeed(n) it draws the numbers that Python draws after mx.random.seed(n). In a
// function under Compile or Vmap, let the key be an argument: one of the sequence is a
// constant there. Where Checkpoint runs a function again, it draws the same.
//
// # Transforms
//
// Transforms take and give functions of arrays (Func). They run the function on
// stand-ins for the arguments; what it does to arrays that it captures instead counts
// as constant.
//
//   - VJP and JVP give products with the Jacobian, Grad and ValueAndGrad the gradient
//     of a scalar. AsFunc puts a gradient under another transform: Vmap for the gradients
//     of single samples, Grad again for second derivatives.
//   - CustomVJP gives a function a gradient of its own, CustomFunction also rules for
//     JVP and Vmap. Checkpoint gives up memory for time.
//   - Vmap runs a function that is written for one element on all of them at once.
//   - Compile simplifies and fuses. It traces the function for each new signature, that
//     is shapes, dtypes and stream, and keeps the 64 that were used last.
//   - Export writes a function to a file, which Import reads here or on another machine.
//
// Packages tree and optim, beside this one, take gradients with respect to structs,
// maps and slices of parameters, and have SGD, AdamW, clipping and schedules that can
// be part of a compiled step.
//
// # Files
//
// Package mlxio reads and writes safetensors, GGUF and NumPy's .npy files.
//
// A .mlxfn file, which Export writes, is a program and not checked: import only what
// you trust.
//
// # Several processes
//
// Package distributed joins the processes that run the same program to a group, which
// exchanges arrays and averages gradients.
//
// # Goroutines and threads
//
// Any goroutine may use any array, at any time. MLX itself binds arrays to threads
// and keeps its graph in plain memory; this package gives it streams that every
// thread may use, and holds one lock around whatever builds or walks a graph. While
// an evaluation on CPU streams computes, the lock is free. It is held while a
// function of arrays runs under a transform: such a function must not wait for
// another goroutine that uses this package.
//
// An evaluation cannot be cancelled: a loop looks at its context between one and the next.
//
// Building an operation inside a scope costs a lone goroutine a call into C, a handle and a
// lock, beside what MLX takes (./build.sh bench overhead; the README has figures).
//
// WithScope, WithDevice and WithStream hold for the calling goroutine, and not for
// those that it starts.
//
// # The end of a program
//
// A program calls Shutdown as its last act, before os.Exit or the return of main. On macOS, Go ends a process
// through the C library, which destroys MLX's static objects while goroutines, cleanups and MLX's threads may
// still use them; the process then sometimes crashes. After Shutdown every operation returns ErrShutdown.
//
// # Custom kernels
//
// MetalKernel and CUDAKernel put MLX's custom kernels into the graph, HostFunction a C
// function on a CPU stream. Their gradient comes from CustomVJP. Trace shows the source
// that MLX makes of a Metal kernel, on any machine; package customkernels of this module
// runs Metal kernels on any machine.
//
// # How it follows mlx-c
//
// A generator writes the thin layer under this package from the headers of the pinned
// mlx-c, and a test fails if one of their functions is neither bound nor on a list with
// the reason. The loaded libraries must be the pinned pair: else every operation gives
// the error that Check returns.
package mlxc
