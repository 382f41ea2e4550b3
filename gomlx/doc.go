// Package gomlx is a backend of GoMLX (github.com/gomlx/gomlx) that computes with MLX. A program imports it for its side
// effect, and selects it by GoMLX's environment variable:
//
//	import _ "github.com/mlxgrad/mlxgrad/gomlx"
//
//	GOMLX_BACKEND=mlx go run ./train
//
// The configuration is "mlx" for MLX's default device, which is the GPU if there is one, or "mlx:cpu" or "mlx:gpu".
// A backend has one device: GoMLX distributes work across the devices of a backend as equals, and a CPU and a GPU are
// not.
//
// # Graphs
//
// GoMLX builds a graph of operations with fixed shapes. Each function of the graph becomes a compiled function of
// package mlxc, traced at its first execution. A function that contains While or If, whose course depends on values, is
// not compiled: its operations run one by one, and the branches and bodies are compiled functions.
//
// The first backend on the CPU sets the compile mode of the process to mlxc.CompileNoFuse, unless the program has set a
// mode: MLX's fusing for CPUs takes the C++ compiler longer than a small training. To fuse, call mlxc.SetCompileMode
// after New.
//
// Dense layers, matrix products, softmax, layer norm and attention run the kernels of package ops where these support
// the dtype. GoMLX differentiates graphs itself and takes gradients of its own composed operations.
//
// # Errors
//
// An operation that MLX cannot express returns an error that wraps backends.ErrNotImplemented while the graph is built:
// complex128, float64 on a GPU, collective operations, quantized dense layers and others. GoMLX then composes fused
// operations of basic ones. Nothing in this package panics.
//
// # Buffers
//
// A buffer is an array of package mlxc. Results, donated inputs and copies to a device are not copied. Data from Go is
// copied once, because GoMLX may change it afterwards. BufferFinalize frees a buffer; the garbage collector frees
// buffers that GoMLX forgets. An execution computes its results before it returns, so it also returns their errors.
package gomlx
