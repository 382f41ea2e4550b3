package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// SSMScanConfig holds the optional inputs of [SSMScan].
type SSMScanConfig struct {
	// D adds D·x to the result. Its shape is [heads], its dtype float32, float16 or bfloat16. nil means no such term.
	D *mlxc.Array
	// InitialState is the state before the first step of every sequence, [sequences, heads, P, N] of float32, float16 or
	// bfloat16. There is one sequence for each batch element, or as many as Starts has. nil means zeros.
	InitialState *mlxc.Array
	// Starts packs sequences of different lengths one after the other along the length axis of a single batch. Sequence
	// n has the steps from Starts[n] to Starts[n+1]−1. It may be empty. Starts is int32 with one element more than there
	// are sequences, and ascends from 0 to the length; nil means no packed sequences. Other starts have the
	// consequences that [AttentionConfig] describes.
	Starts *mlxc.Array
}

// SSMScan runs a selective state-space model over the steps of sequences, as in Mamba-2 (Dao and Gu, "Transformers are
// SSMs", 2024). It returns y and the state after the last step. The forward pass and the gradient are this project's
// kernels.
//
// The shapes are x [batch, length, heads, P], dt [batch, length, heads], a [heads], b and c [batch, length, groups, N]
// and, for y, [batch, length, heads, P]. heads is a multiple of groups, and neighboring heads share a group. P and N
// are multiples of 8 up to 256: the head dimension and the size of the state. x, b and c have one dtype: float32,
// float16 or bfloat16. dt and a may each have any of these. y has the dtype of x. state, after the last step of each
// sequence, is float32 of shape [sequences, heads, P, N]. At each step of a head:
//
//	h = exp(dt·a)·h + dt·x·bᵀ
//	y = h·c + D·x
//
// dt must not be negative: it is usually a softplus. a is usually negative, so that the state decays. dt·a may be −∞,
// for a decay of 0. Less than −128 counts as −∞. NaN or infinity in x, b or c may also make results of earlier steps
// NaN, up to 127 steps before.
//
// All floating-point inputs have gradients. Arithmetic is float32. On NVIDIA GPUs, factors of matrix products are
// rounded to the dtype of x if it has 16 bits, and states to TF32. Results have the same bits in every run. Memory is
// linear in the length: the kernels keep one state for each chunk of 64 or 128 steps.
//
// Without a C++ compiler, on a CPU, SSMScan is composed of basic MLX operations for each step.
func SSMScan(x, dt, a, b, c *mlxc.Array, cfg SSMScanConfig) (y, state *mlxc.Array) {
	const op = "ops.SSMScan"
	if err := checkSSMScan(x, dt, a, b, c, cfg); err != nil {
		err = opError(op, err, x, dt, a, b, c, cfg.D, cfg.InitialState, cfg.Starts)
		return mlxc.InvalidArray(err), mlxc.InvalidArray(err)
	}
	results := scoped(func() []*mlxc.Array {
		in := ssmInputs{x: x, dt: inFloat32(dt), a: inFloat32(a), b: b, c: c, starts: cfg.Starts}
		in.d, in.state = inFloat32(cfg.D), inFloat32(cfg.InitialState)
		if x.Size() == 0 || !kernelsAvailable(op) {
			return in.composed()
		}
		return withHidden(2, op, in.list(),
			func(args []*mlxc.Array) []*mlxc.Array {
				return ssmForward(currentTarget(), ssmInputsFrom(args))
			},
			func(args, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
				return ssmBackward(currentTarget(), ssmInputsFrom(args), outputs, cotangents[0], cotangents[1])
			})
	})
	if len(results) == 1 { // an error
		return results[0], results[0]
	}
	return results[0], results[1]
}

// SSMStep computes one step of [SSMScan], for decoding. The shapes are x [batch, heads, P], dt [batch, heads], a
// [heads], b and c [batch, groups, N], d [heads] or nil, and state [batch, heads, P, N]. It returns y, [batch, heads,
// P] in the dtype of x, and the state after the step, in float32. The operation is composed of basic MLX operations, so
// it has MLX's gradient. P and N may have any size.
func SSMStep(x, dt, a, b, c, d, state *mlxc.Array) (y, next *mlxc.Array) {
	const op = "ops.SSMStep"
	if err := checkSSMStep(x, dt, a, b, c, d, state); err != nil {
		err = opError(op, err, x, dt, a, b, c, d, state)
		return mlxc.InvalidArray(err), mlxc.InvalidArray(err)
	}
	results := scoped(func() []*mlxc.Array {
		y, next := ssmStep(
			inFloat32(x), inFloat32(dt), inFloat32(a), inFloat32(b), inFloat32(c), inFloat32(d), inFloat32(state))
		return []*mlxc.Array{y.AsType(x.DType()), next}
	})
	return results[0], results[1]
}

// inFloat32 returns x as float32, and nil for nil.
func inFloat32(x *mlxc.Array) *mlxc.Array {
	if x == nil {
		return nil
	}
	return x.AsType(mlxc.Float32)
}
