package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// gatedDeltaMLX is GatedDeltaRule composed of basic MLX operations in float32, step by step. Its gradient is MLX's. It
// holds the states of all steps. c.Scale must be set.
func gatedDeltaMLX(q, k, v, logDecay, beta *mlxc.Array, c GatedDeltaRuleConfig) (out, state *mlxc.Array) {
	batch, heads, length, headDim, valueDim := v.Dim(0), v.Dim(1), v.Dim(2), q.Dim(3), v.Dim(3)
	sequences := batch
	if c.Starts != nil {
		sequences = c.Starts.Dim(0) - 1
	}
	initial := mlxc.Zeros(mlxc.Float32, sequences, heads, headDim, valueDim)
	if c.InitialState != nil {
		initial = c.InitialState.AsType(mlxc.Float32)
	}
	if batch*length == 0 {
		return mlxc.Zeros(v.DType(), v.Shape()...), initial
	}
	// Columns q_t and k_t, rows v_t, and numbers, for each step.
	step := func(x *mlxc.Array, t int, shape ...int) *mlxc.Array {
		first, last := make([]int, x.NDim()), x.Shape()
		first[2], last[2] = t, t+1
		return x.Slice(first, last, nil).AsType(mlxc.Float32).Reshape(append([]int{batch, -1}, shape...)...)
	}
	ofKeyHead := func(x *mlxc.Array, t int) *mlxc.Array {
		return step(x, t, 1, headDim, 1).BroadcastTo(batch, q.Dim(1), heads/q.Dim(1), headDim, 1).
			Reshape(batch, heads, headDim, 1)
	}
	outs := make([]*mlxc.Array, length)
	walk := newPackedWalk(c.Starts, initial, length)
	state = initial
	for t := range length {
		state = walk.enter(state, t)
		key := ofKeyHead(k, t)
		state = state.Mul(step(logDecay, t, 1, 1).Exp())
		update := step(v, t, 1, valueDim).Sub(state.Mul(key).Sum(2).ExpandDims(2)).Mul(step(beta, t, 1, 1))
		state = state.Add(key.Mul(update))
		outs[t] = ofKeyHead(q, t).MulScalar(float64(c.Scale)).Mul(state).Sum(2)
		walk.leave(state, t)
	}
	return mlxc.Stack(2, outs...).AsType(v.DType()), walk.final(state)
}

// A packedWalk exchanges the state of a recurrence at the boundaries of packed sequences. Without starts it does nothing.
type packedWalk struct {
	starts          *mlxc.Array
	initial, finals *mlxc.Array // [sequences, …]
	sequence        *mlxc.Array // of each step
}

func newPackedWalk(starts, initial *mlxc.Array, length int) *packedWalk {
	w := &packedWalk{starts: starts, initial: initial, finals: initial} // an empty sequence keeps its initial state
	if starts != nil {
		w.sequence = sequenceOf(mlxc.Arange(mlxc.Int32, 0, float64(length), 1), starts)
	}
	return w
}

// enter returns the state before step t: the sequence's initial state if t is its first step.
func (w *packedWalk) enter(state *mlxc.Array, t int) *mlxc.Array {
	if w.starts == nil {
		return state
	}
	sequence := w.sequence.Slice([]int{t}, []int{t + 1}, nil)
	first := w.starts.Take(sequence, 0).Equal(mlxc.Scalar(int32(t))).Reshape(1, 1, 1, 1)
	initial := w.initial.Take(sequence, 0)
	if t == 0 {
		return initial
	}
	return mlxc.Where(first, initial, state)
}

// leave records the state after step t if it is the last step of a sequence.
func (w *packedWalk) leave(state *mlxc.Array, t int) {
	if w.starts == nil {
		return
	}
	n := w.starts.Dim(0) - 1
	first, end := w.starts.Slice([]int{0}, []int{n}, nil), w.starts.Slice([]int{1}, []int{n + 1}, nil)
	ends := end.Equal(mlxc.Scalar(int32(t+1))).LogicalAnd(first.Less(end)).Reshape(n, 1, 1, 1)
	w.finals = mlxc.Where(ends, state, w.finals)
}

// final returns the state after the last step of each sequence, given the last state.
func (w *packedWalk) final(last *mlxc.Array) *mlxc.Array {
	if w.starts == nil {
		return last
	}
	return w.finals
}
