package oracle

import (
	"math"
	"sync"
)

// GatedDelta holds the operands of the gated delta rule (Yang, Kautz, Hatamizadeh, "Gated Delta Networks", 2024, section
// 3). Value head h of Hv uses the head h·Hk/Hv of q and k, so neighboring value heads share one.
//
// A value head has a state S of D × DV. For each step t, with α_t = exp(logDecay_t):
//
//	H_t   = α_t·S_{t−1}
//	u_t   = β_t·(v_t − H_tᵀ·k_t)
//	S_t   = H_t + k_t·u_tᵀ
//	out_t = scale·S_tᵀ·q_t
type GatedDelta struct {
	Q, K, V        Tensor  // [B, Hk, L, D], [B, Hk, L, D], [B, Hv, L, DV]
	LogDecay, Beta Tensor  // [B, Hv, L]
	Initial        *Tensor // states before the first step, [B, Hv, D, DV], or one for each of Starts; nil for zeros
	Scale          float64

	// Starts holds the first index of each of several concatenated sequences, and the end of the last. B is 1 then.
	Starts []int
}

// GatedDeltaGradients holds the gradients of the fields of a [GatedDelta], in the shapes of the fields. The gradient of
// the initial state is there also if it is nil.
type GatedDeltaGradients struct {
	Q, K, V, LogDecay, Beta, Initial Tensor
}

// Forward returns out [B, Hv, L, DV] and the states after the last steps, [B, Hv, D, DV], or one for each of Starts.
func (g GatedDelta) Forward() (out, final Tensor) {
	out, final = New(g.V.Shape...), New(g.stateShape()...)
	g.eachSequence(func(s deltaSequence) {
		states := g.states(s)
		copy(s.state(final), states[len(states)-1])
		for i, state := range states[1:] {
			g.addColumns(out.row(s.valueRow+i), state, g.Q.row(s.keyRow+i), g.Scale)
		}
	})
	return out, final
}

// VJP returns the gradients of ⟨dout, out⟩ + ⟨dfinal, final⟩. It follows the steps backward. With dS the gradient of S_t:
//
//	dS       += scale·q_t·dout_tᵀ,  dq_t = scale·S_t·dout_t
//	du_t      = dSᵀ·k_t,  dv_t = β_t·du_t
//	dk_t      = dS·u_t − β_t·H_t·du_t
//	dβ_t      = ⟨du_t, v_t − H_tᵀ·k_t⟩
//	dH_t      = dS − β_t·k_t·du_tᵀ
//	dlogDecay = ⟨dH_t, H_t⟩
//	dS_{t−1}  = α_t·dH_t
func (g GatedDelta) VJP(dout, dfinal Tensor) GatedDeltaGradients {
	grads := GatedDeltaGradients{
		V: New(g.V.Shape...), LogDecay: New(g.Beta.Shape...), Beta: New(g.Beta.Shape...), Initial: New(g.stateShape()...),
	}
	// Per value head, and summed at the end: goroutines must not add to the same element.
	perHead := []int{g.V.Shape[0], g.V.Shape[1], g.Q.Shape[2], g.Q.Shape[3]}
	dq, dk := New(perHead...), New(perHead...)
	g.eachSequence(func(s deltaSequence) {
		states, dState := g.states(s), s.state(grads.Initial)
		copy(dState, s.state(dfinal))
		for i := s.steps - 1; i >= 0; i-- {
			row := s.valueRow + i
			q, k, do := g.Q.row(s.keyRow+i), g.K.row(s.keyRow+i), dout.row(row)
			decay, beta := math.Exp(g.LogDecay.Data[row]), g.Beta.Data[row]
			g.addOuter(dState, q, do, g.Scale)
			g.addRows(dq.row(row), states[i+1], do, g.Scale)
			held := scaled(states[i], decay)
			missing := g.missing(held, k, g.V.row(row))
			du := make([]float64, len(do))
			g.addColumns(du, dState, k, 1)
			g.addRows(dk.row(row), dState, scaled(missing, beta), 1)
			g.addRows(dk.row(row), held, du, -beta)
			copy(grads.V.row(row), scaled(du, beta))
			grads.Beta.Data[row] = dot(du, missing)
			g.addOuter(dState, k, du, -beta)
			grads.LogDecay.Data[row] = dot(dState, held)
			copy(dState, scaled(dState, decay))
		}
	})
	grads.Q, grads.K = g.sumOfGroups(dq), g.sumOfGroups(dk)
	return grads
}

// sumOfGroups adds the rows of the value heads that share a head of q and k.
func (g GatedDelta) sumOfGroups(perHead Tensor) Tensor {
	sum := New(g.Q.Shape...)
	batches, heads, length := perHead.Shape[0], perHead.Shape[1], perHead.Shape[2]
	for b := range batches {
		for h := range heads {
			for t := range length {
				to := sum.row((b*g.Q.Shape[1]+h*g.Q.Shape[1]/heads)*length + t)
				for i, x := range perHead.row((b*heads+h)*length + t) {
					to[i] += x
				}
			}
		}
	}
	return sum
}

// deltaSequence is a sequence of one value head.
type deltaSequence struct {
	index, head      int // of the states
	heads, size      int // number of heads of a state, and its elements
	keyRow, valueRow int // row of the first step in Q, and in V
	steps            int
}

// state returns the state of the sequence in a tensor of states.
func (s deltaSequence) state(t Tensor) []float64 {
	at := (s.index*s.heads + s.head) * s.size
	return t.Data[at : at+s.size]
}

func (g GatedDelta) stateShape() []int {
	sequences := g.V.Shape[0]
	if g.Starts != nil {
		sequences = len(g.Starts) - 1
	}
	return []int{sequences, g.V.Shape[1], g.Q.Shape[3], g.V.Shape[3]}
}

// eachSequence calls f for every sequence of every value head. The calls are concurrent.
func (g GatedDelta) eachSequence(f func(s deltaSequence)) {
	shape := g.stateShape()
	keyHeads, length := g.Q.Shape[1], g.Q.Shape[2]
	var all sync.WaitGroup
	for index := range shape[0] {
		for head := range shape[1] {
			batch, first, steps := index, 0, length
			if g.Starts != nil {
				batch, first, steps = 0, g.Starts[index], g.Starts[index+1]-g.Starts[index]
			}
			s := deltaSequence{
				index: index, head: head, heads: shape[1], size: shape[2] * shape[3], steps: steps,
				keyRow:   (batch*keyHeads+head*keyHeads/shape[1])*length + first,
				valueRow: (batch*shape[1]+head)*length + first,
			}
			all.Go(func() { f(s) })
		}
	}
	all.Wait()
}

// states returns the state before the first step and after each step.
func (g GatedDelta) states(s deltaSequence) [][]float64 {
	first := make([]float64, s.size)
	if g.Initial != nil {
		copy(first, s.state(*g.Initial))
	}
	states := [][]float64{first}
	for i := range s.steps {
		row := s.valueRow + i
		state := scaled(states[i], math.Exp(g.LogDecay.Data[row]))
		k := g.K.row(s.keyRow + i)
		g.addOuter(state, k, g.missing(state, k, g.V.row(row)), g.Beta.Data[row])
		states = append(states, state)
	}
	return states
}

// missing returns v − stateᵀ·k.
func (g GatedDelta) missing(state, k, v []float64) []float64 {
	out := append([]float64(nil), v...)
	g.addColumns(out, state, k, -1)
	return out
}

// addColumns adds factor·stateᵀ·x to sum.
func (g GatedDelta) addColumns(sum, state, x []float64, factor float64) {
	for i, xi := range x {
		for j := range sum {
			sum[j] += factor * xi * state[i*len(sum)+j]
		}
	}
}

// addRows adds factor·state·y to sum.
func (g GatedDelta) addRows(sum, state, y []float64, factor float64) {
	for i := range sum {
		sum[i] += factor * dot(state[i*len(y):(i+1)*len(y)], y)
	}
}

// addOuter adds factor·x·yᵀ to a state.
func (g GatedDelta) addOuter(state, x, y []float64, factor float64) {
	for i, xi := range x {
		for j, yj := range y {
			state[i*len(y)+j] += factor * xi * yj
		}
	}
}

func scaled(x []float64, factor float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		if factor != 0 { // an infinite state is forgotten too
			out[i] = factor * x[i]
		}
	}
	return out
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
