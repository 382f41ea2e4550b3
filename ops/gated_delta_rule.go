package ops

import (
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// GatedDeltaRuleConfig holds the options of [GatedDeltaRule]. The zero value selects one sequence per batch element,
// states that start at zero, and queries scaled by head_dim^−½.
type GatedDeltaRuleConfig struct {
	// Scale multiplies the queries. It must be finite; 0 means head_dim^−½. Models that scale their queries themselves,
	// as in mlx-lm, set 1.
	Scale float32
	// InitialState is the state before the first step of every sequence, [sequences, valueHeads, head_dim, valueDim] of
	// float32, float16 or bfloat16. There is one sequence for each batch element, or as many as Starts has. nil means
	// zeros.
	InitialState *mlxc.Array
	// Starts packs sequences of different lengths one after the other along the length axis of a single batch. Sequence
	// n has the steps from Starts[n] to Starts[n+1]−1. It may be empty. Starts is int32 with one element more than
	// there are sequences, and ascends from 0 to the length; nil means no packed sequences. Other starts have the
	// consequences that [AttentionConfig] describes.
	Starts *mlxc.Array
}

// GatedDeltaRule is the gated delta rule, a linear attention with a state of fixed size (Yang, Kautz, Hatamizadeh,
// "Gated Delta Networks", 2024, section 3). The forward pass and the gradient are this project's kernels.
//
// Each value head has a state S of head_dim × valueDim. At step t, with the decay α_t = exp(logDecay_t), in (0, 1]:
//
//	u_t = beta_t·(v_t − α_t·S_{t−1}ᵀ·k_t)
//	S_t = α_t·S_{t−1} + k_t·u_tᵀ
//	out_t = scale·S_tᵀ·q_t
//
// The shapes are q and k [batch, keyHeads, length, head_dim], v [batch, valueHeads, length, valueDim], logDecay and beta
// [batch, valueHeads, length] and, for the results, out like v, and state [sequences, valueHeads, head_dim, valueDim],
// the state after the last step of each sequence. valueHeads is a multiple of keyHeads, and neighboring value heads share
// a head of q and k. head_dim and valueDim are multiples of 16 up to 256.
//
// q, k and v have one dtype: float32, float16 or bfloat16. logDecay and beta have this dtype or float32. state is float32.
// The decay is a logarithm because products of decays over many steps are sums of logarithms, and because the logarithm
// of a decay close to 1 has more bits. logDecay must be at most 0. Less than −128 counts as −∞, a decay of 0. A decay
// for each channel is not supported.
//
// The kernels process chunks of steps with matrix products. Arithmetic is float32, on NVIDIA GPUs without TF32. All
// inputs but Starts have a gradient. Gradients have the same bits in every run. Memory is linear in the length, and a
// gradient keeps only the inputs: the backward pass computes the states again. Without a C++ compiler, on a CPU,
// GatedDeltaRule is composed of basic MLX operations for each step, and a gradient keeps all states.
//
// [mlxc.GatedDeltaUpdate] is MLX's function. Its arrays have the layouts [batch, length, heads, head_dim] and, for
// states, [batch, heads, valueDim, head_dim], and its gates are the decays themselves.
func GatedDeltaRule(q, k, v, logDecay, beta *mlxc.Array, c GatedDeltaRuleConfig) (out, state *mlxc.Array) {
	const op = "ops.GatedDeltaRule"
	if err := checkGatedDelta(q, k, v, logDecay, beta, c); err != nil {
		err = opError(op, err, q, k, v, logDecay, beta, c.InitialState, c.Starts)
		return mlxc.InvalidArray(err), mlxc.InvalidArray(err)
	}
	c = c.withScale(q.Dim(3))
	if q.Size() == 0 || v.Size() == 0 || !kernelsAvailable(op) {
		return gatedDeltaMLX(q, k, v, logDecay, beta, c)
	}
	in := gatedDeltaInputs{q, k, v, logDecay, beta, c.InitialState, c.Starts}
	results := withGradient(gatedDeltaKey{op, c.Scale}, in.list(),
		func(args []*mlxc.Array) []*mlxc.Array {
			return gatedDeltaForward(currentTarget(), gatedDeltaInputsFrom(args), c.Scale)
		},
		func(args, cotangents, _ []*mlxc.Array) []*mlxc.Array {
			in := gatedDeltaInputsFrom(args)
			return gatedDeltaBackward(currentTarget(), in, cotangents[0], cotangents[1], c.Scale)
		})
	if len(results) != 2 { // an error is a single array
		return results[0], results[0]
	}
	return results[0], results[1]
}

// A gatedDeltaKey identifies the graphs of a gated delta rule. See withGradient.
type gatedDeltaKey struct {
	op    string
	scale float32
}

// withScale replaces a Scale of 0 by head_dim^−½.
func (c GatedDeltaRuleConfig) withScale(headDim int) GatedDeltaRuleConfig {
	if c.Scale == 0 {
		c.Scale = float32(1 / math.Sqrt(float64(headDim)))
	}
	return c
}

// GatedDeltaStep is one step of [GatedDeltaRule], for decoding. The shapes are q and k [batch, keyHeads, head_dim], v
// [batch, valueHeads, valueDim], logDecay and beta [batch, valueHeads], and state [batch, valueHeads, head_dim,
// valueDim]; the results are out like v, and the next state, float32. scale multiplies the queries; 0 means
// head_dim^−½. head_dim and valueDim, dtypes and logDecay are as in GatedDeltaRule.
//
// The kernel has no gradient. Under a gradient (see [mlxc.Differentiating]) GatedDeltaStep is a GatedDeltaRule of one
// step.
func GatedDeltaStep(q, k, v, logDecay, beta, state *mlxc.Array, scale float32) (out, next *mlxc.Array) {
	const op = "ops.GatedDeltaStep"
	if err := checkGatedDeltaStep(q, k, v, logDecay, beta, state, scale); err != nil {
		err = opError(op, err, q, k, v, logDecay, beta, state)
		return mlxc.InvalidArray(err), mlxc.InvalidArray(err)
	}
	c := GatedDeltaRuleConfig{Scale: scale, InitialState: state}.withScale(q.Dim(-1))
	if q.Size() == 0 || v.Size() == 0 || mlxc.Differentiating() || !kernelsAvailable(op) {
		mlxc.WithScope(func() {
			out, next = GatedDeltaRule(
				q.ExpandDims(2), k.ExpandDims(2), v.ExpandDims(2), logDecay.ExpandDims(2), beta.ExpandDims(2), c)
			out = out.Squeeze(2).Keep()
			next.Keep()
		})
		return out, next
	}
	results := gatedDeltaStep(currentTarget(), q, k, v, logDecay, beta, state, c.Scale)
	return results[0], results[1]
}
