// Package ops has differentiable operations on MLX arrays whose gradients are
// this project's own Metal kernels.
//
// An operation reads like MLX's of the same name and computes the same values; its
// forward pass is MLX's own where MLX has one of its kind in one pass. What differs is
// the gradient: kernels that run on every device that package customkernels has an
// executor for, in float32, float16 and bfloat16 storage with float32 arithmetic,
// whose results are the same bits at every run. On NVIDIA GPUs the products of float32
// matrices in Attention and LinearCrossEntropy are of TF32, as MLX's own are, unless the
// environment variable MLX_ENABLE_TF32 is 0.
//
// Operations work inside mlxc's VJP, ValueAndGrad, Checkpoint and Compile, and may
// be called by any goroutine. A second derivative, a compilation without shapes, Vmap of a
// kernel and a forward-mode derivative of one are refused with an error: MLX's own operations
// have these. Where the forward pass is MLX's, as RMSNorm's and LayerNorm's is, forward mode
// and Vmap work. On a CPU the kernels need a C++ compiler at run time; without one, MLX's
// gradient is used and a warning is logged once. They are not exported there: see mlxc.Export.
package ops
