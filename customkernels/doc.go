// Package customkernels runs Metal kernels as operations on MLX arrays, on every machine.
//
// A kernel is a complete Metal function in a .metal file, which Xcode could compile. Load reads the file,
// Library.Kernel selects a function, and Kernel.Launch adds a lazy node to the graph of its inputs:
//
//	lib, err := customkernels.Load(os.DirFS("shaders"), "scale.metal")
//	scale, err := lib.Kernel("scale")
//	y := scale.Launch(customkernels.Launch{
//		Grid:        [3]int{x.Size()},
//		Threadgroup: [3]int{256},
//		Outputs:     []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}},
//	}, x, factor)[0]
//
// Grid and Threadgroup count threads.
//
// # Executors
//
// MLX generates the complete Metal source of a custom kernel on any machine. That text is the input of every executor.
// The backend of the current stream selects one:
//
//	Apple GPU   MLX's custom Metal kernels.
//	NVIDIA GPU  MLX's custom CUDA kernels, with the source translated to CUDA.
//	CPU         The host executor. It rewrites the source to C++ (mostly address-space qualifiers and
//	            attributes), compiles it with the system's compiler, and caches the library on disk. Kernels
//	            whose threads synchronize run with one fiber for each thread, others as a loop. Compiled
//	            kernels stay loaded for the life of the process. A launch runs on up to
//	            GOMAXPROCS threads, which Go derives from the affinity mask and the CPU limit of
//	            a container. The number does not change results. The local variables of a function
//	            may take 112 KiB for each thread, and less on systems with pages above 4 KiB.
//
// The host executor tells calls of SIMD-group functions apart by their lines. Lanes that reach one line through
// different branches, for example in a helper function, make one call there; on a GPU they make two. [Kernel.Sanitize]
// reports such calls.
//
// The node is lazy and works inside VJP, ValueAndGrad, Compile and Checkpoint. A kernel has no gradient: WithVJP adds
// one.
//
// # Parameters
//
// The function's buffers become inputs and outputs, each in the order of the buffer numbers:
//
//	device const T* x       an input of one axis or more, in row-major order
//	constant T& n           an input without axes (see Constant)
//	constant T* table       an input of one to seven elements
//	constant S& s           a structure or vector: an input of one to seven elements of any dtype
//	device const char* b    bytes: an input of one axis or more, of any dtype
//	device T* y             an output, undefined before the launch unless Launch.InitValue is set
//	uint3 p [[attribute]]   a thread position: neither an input nor an output
//
// MLX passes inputs of eight elements or more in device memory, even if the parameter is declared constant. Apple's
// compiler then rejects a call that passes the parameter to a helper function whose parameter is constant. Sanitize
// finds such calls.
//
// # Compiled kernels
//
// The host executor uses the compiler that the environment variable CXX names, or else g++, clang++ or c++. CXX has the
// syntax of the go command: it may contain arguments, and a path with spaces is quoted, as in CXX='"/opt/my tools/g++"
// -m64'. A compiler that runs for more than ten minutes is stopped, and the launch fails.
//
// Compiled kernels are cached in the folder CacheDir for later processes. Files are loaded only if no user other than
// this one and root can write them or the folders above them.
//
// The package logs to the default logger of log/slog, each message at most once in a process:
//
//   - at level Info, that it is compiling kernels, once compilation has taken a second in total;
//   - at level Warn, that compiled kernels are kept in a temporary folder, and the reason;
//   - at level Warn, that the folder was emptied because other users could write it.
//
// slog.SetLogLoggerLevel(slog.LevelWarn) hides the first message.
//
// # Checking
//
// Kernel.Sanitize runs a launch under a checker, in a separate process. It finds data races, wrong fences, divergent
// barriers, accesses out of bounds, uninitialized reads and behavior that only some GPUs tolerate, and reports each
// with file, line, element and threads. It also runs launches that MLX does not support (Launch.InOut). In a Go test:
//
//	report, err := kernel.Sanitize(ctx, launch, sanitizer.Config{}, x, y)
//	if err == nil && len(report.Findings) > 0 {
//		t.Errorf("%v", report.Findings[0])
//	}
//
// Package sanitizer defines the findings, and does the same without MLX. Package launchspec reads launches from the
// comments of a shader file, and Kernel.Arguments converts them.
//
// # Errors
//
// An invalid Launch returns invalid arrays (see mlxc.Array). Their error names the kernel, the shapes and the dtypes.
// If a launch fails during evaluation, for example for lack of memory, every later read of its outputs and of arrays
// that depend on them returns the same error.
package customkernels
