// Package customkernels makes Metal kernels operations on MLX arrays, on every
// machine.
//
// A kernel is a complete Metal function in a .metal file, one that Xcode could
// compile. Load reads the file, Kernel picks a function, and Launch adds a lazy
// node to the graph of its inputs:
//
//	lib, err := customkernels.Load(os.DirFS("shaders"), "scale.metal")
//	scale, err := lib.Kernel("scale")
//	y := scale.Launch(customkernels.Launch{
//		Grid:        [3]int{x.Size(), 1, 1},
//		Threadgroup: [3]int{256, 1, 1},
//		Outputs:     []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}},
//	}, x, factor)[0]
//
// What executes it depends on the device of the current stream. On an Apple GPU it
// is MLX's custom Metal kernel. On a CPU it is the host executor: the text that MLX
// itself generates for Metal, byte for byte, is rewritten at its address-space
// qualifiers and attributes to C++, compiled by the system's compiler, cached on
// disk, and run with one fiber for each GPU thread where threads meet, or as a
// plain loop where they do not; a program that makes ever new kernels grows, since what was
// compiled stays loaded. Either way the node is lazy and works inside VJP,
// ValueAndGrad, Compile and Checkpoint. A kernel has no gradient of its own; WithVJP
// gives it one.
//
// # How parameters become arrays
//
// The parameters of the function map to arrays in the order of their buffer
// numbers, inputs and outputs apart:
//
//	device const T* x       an input of one axis or more, in row-major order
//	constant T& n           a scalar input, an array without axes (see Constant)
//	constant T* table       an input of one to seven elements
//	constant S& s           a structure or vector: an input of one to seven elements of any dtype
//	device const char* b    bytes: an input of one axis or more, of any dtype
//	device T* y             an output, not initialised unless Launch.InitValue is set
//	uint3 p [[attribute]]   nothing: a position
//
// MLX puts inputs of eight elements or more in device memory, whatever the parameter says: Apple's
// compiler then refuses to pass them to a helper that says constant, which Sanitize finds.
//
// # Compiled kernels
//
// The host executor compiles with the compiler that the environment variable CXX names, or else
// with g++, clang++ or c++. CXX is read as the go command reads it: it may have arguments, and a
// path with spaces stands in quotes, CXX='"/opt/my tools/g++" -m64'. A compiler that does not
// end within ten minutes is stopped, and the launch fails.
//
// The libraries are kept in the folder that CacheDir returns and used by later processes. Files
// there are loaded only if nobody but the user and root can write them and the folders above them.
//
// The package logs to the default logger of log/slog, each at most once in a process:
//
//   - at level Info, that it compiles kernels, when that takes longer than a second in all;
//   - at level Warn, that compiled kernels are kept in a temporary folder, and why;
//   - at level Warn, that the folder was emptied because others could write it.
//
// slog.SetLogLoggerLevel(slog.LevelWarn) hides the first, and so does any handler of that level.
//
// # Checking
//
// Kernel.Sanitize runs a launch in a process of its own under a checker that finds
// data races, wrong fences, divergent barriers, accesses out of bounds, uninitialized
// reads and what only some GPUs forgive, each with file, line, element and threads. It
// runs what MLX cannot express too (Launch.InOut). It fits into a Go test:
//
//	report, err := kernel.Sanitize(ctx, launch, sanitizer.Config{}, x, y)
//	if err == nil && len(report.Findings) > 0 {
//		t.Errorf("%v", report.Findings[0])
//	}
//
// Package sanitizer has the findings, and does the same without MLX. ParseLaunches reads launch descriptions from
// a shader's comments.
//
// # Errors
//
// A Launch that cannot work gives invalid arrays (see mlxc.Array) that name the
// kernel, the shapes and the dtypes; a syntax error in a shader is one of these. A
// launch that fails when it is evaluated, for want of memory, say, makes every later read
// of its outputs, and of what depends on them, fail with the same error.
package customkernels
