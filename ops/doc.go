// Package ops provides differentiable operations on MLX arrays. Their gradients are Metal kernels of this project, with
// three exceptions: SSMStep and attention with heads wider than 256 consist of MLX's operations, as does MatMul on GPUs
// and on macOS.
//
// An operation computes the same values as MLX's operation of the same name, if MLX has one. Its gradient runs on every
// device for which package customkernels has an executor. Storage is float32, float16 or bfloat16, arithmetic is
// float32, and the results have the same bits at every run. On NVIDIA GPUs, Attention, LinearCrossEntropy, SSMScan and
// MLX's MatMul multiply float32 matrices in TF32, unless the environment variable MLX_ENABLE_TF32 is 0.
//
// Operations return one to three arrays. Errors are carried by the arrays (see [mlxc.Array.Err]). Operations never
// evaluate an array. Any goroutine may call them.
//
// # Transforms
//
// Operations work inside mlxc's VJP, ValueAndGrad, Checkpoint and Compile. CompileShapeless and second derivatives of
// kernels return an error, except those of Transpose2D. Vmap and forward-mode derivatives return an error if a kernel
// computes the forward pass. They work if MLX computes it, as in RMSNorm and LayerNorm on a GPU. MLX's own operations
// support all of these transforms.
//
// # Running on a CPU
//
// On a CPU the kernels need a C++ compiler at run time. Without one the operations use MLX's gradient and log one
// warning. Functions that contain kernels for a CPU cannot be exported: see mlxc.Export.
//
// # Launches, for tools
//
// KernelLaunches, KernelLaunch and CaseSet list the launches of all operations. The command mlxgrad checks them and
// measures their traffic. Other programs do not need them.
package ops
