package oracle

import "math"

// SSMScan holds the operands of a selective state-space model (Dao and Gu, "Transformers are SSMs", 2024). Head h of H
// uses group h·G/H of B and C. For each batch and head, with the state h before the first step:
//
//	h_t = exp(dt_t·A)·h_{t−1} + dt_t·x_t·B_tᵀ
//	y_t = h_t·C_t + D·x_t
//
// With Starts, the single batch consists of sequences that follow each other. Sequence s has the steps from Starts[s] to
// Starts[s+1]−1, and a state of its own.
type SSMScan struct {
	X, DT, A, B, C Tensor  // [batch, length, H, P], [batch, length, H], [H], [batch, length, G, N] twice
	D, State       *Tensor // [H], [batch or sequences, H, P, N]; nil for zeros
	Starts         []int
}

// SSMScanGradients holds the gradients of the fields of an [SSMScan], in the shapes of the fields. The gradient of a nil
// field is nil.
type SSMScanGradients struct {
	X, DT, A, B, C Tensor
	D, State       *Tensor
}

// Forward returns y, in the shape of X, and the states after the last steps.
func (s SSMScan) Forward() (y, final Tensor) {
	y, final = New(s.X.Shape...), New(s.stateShape()...)
	s.eachHead(func(q ssmHead) {
		states := q.states()
		copy(final.Data[q.state:], states[len(states)-1])
		for t, at := range q.steps {
			for p := range q.p {
				y.Data[at.x+p] = q.d * s.X.Data[at.x+p]
				for n := range q.n {
					y.Data[at.x+p] += states[t+1][p*q.n+n] * s.C.Data[at.b+n]
				}
			}
		}
	})
	return y, final
}

// VJP returns the gradients of ⟨dy, y⟩ + ⟨dfinal, final⟩. With g_t the gradient of h_t, from the last step back:
//
//	g_t      = dy_t·C_tᵀ + exp(dt_{t+1}·A)·g_{t+1}
//	dC_t     = h_tᵀ·dy_t
//	dx_t     = dt_t·g_t·B_t + D·dy_t
//	dB_t     = dt_t·g_tᵀ·x_t
//	da_t     = exp(dt_t·A)·⟨g_t, h_{t−1}⟩
//	ddt_t    = x_t·g_t·B_t + A·da_t
//	dA       = Σ_t dt_t·da_t
//	dD       = Σ_t dy_t·x_t
//	dstate   = exp(dt_1·A)·g_1
func (s SSMScan) VJP(dy, dfinal Tensor) SSMScanGradients {
	grads := SSMScanGradients{
		X: New(s.X.Shape...), DT: New(s.DT.Shape...), A: New(s.A.Shape...), B: New(s.B.Shape...), C: New(s.C.Shape...),
	}
	dd, dstate := New(s.A.Shape...), New(s.stateShape()...)
	s.eachHead(func(q ssmHead) {
		states := q.states()
		g := append([]float64(nil), dfinal.Data[q.state:q.state+q.p*q.n]...)
		for t := len(q.steps) - 1; t >= 0; t-- {
			at := q.steps[t]
			dt := s.DT.Data[at.dt]
			decay, da, direct := math.Exp(dt*q.a), 0.0, 0.0
			for p := range q.p {
				x, dout := s.X.Data[at.x+p], dy.Data[at.x+p]
				dd.Data[q.h] += dout * x
				grads.X.Data[at.x+p] += q.d * dout
				for n := range q.n {
					i := p*q.n + n
					b := s.B.Data[at.b+n]
					g[i] += dout * s.C.Data[at.b+n]
					grads.C.Data[at.b+n] += states[t+1][i] * dout
					grads.X.Data[at.x+p] += dt * g[i] * b
					grads.B.Data[at.b+n] += dt * g[i] * x
					direct += x * g[i] * b
					g[i] *= decay
					da += g[i] * states[t][i]
				}
			}
			grads.DT.Data[at.dt] += direct + q.a*da
			grads.A.Data[q.h] += dt * da
		}
		copy(dstate.Data[q.state:], g)
	})
	if s.D != nil {
		grads.D = &dd
	}
	if s.State != nil {
		grads.State = &dstate
	}
	return grads
}

// sequences returns the number of states.
func (s SSMScan) sequences() int {
	if s.Starts == nil {
		return s.X.Shape[0]
	}
	return len(s.Starts) - 1
}

func (s SSMScan) stateShape() []int {
	return []int{s.sequences(), s.X.Shape[2], s.X.Shape[3], s.B.Shape[3]}
}

// ssmHead is one head of one sequence.
type ssmHead struct {
	scan  SSMScan
	h     int
	p, n  int
	a, d  float64
	state int // index of the state's first element
	steps []ssmStep
}

// ssmStep holds the indices of a step's first elements in X, DT and B.
type ssmStep struct{ x, dt, b int }

// eachHead calls f for each head of each sequence.
func (s SSMScan) eachHead(f func(q ssmHead)) {
	length, heads, groups := s.X.Shape[1], s.X.Shape[2], s.B.Shape[2]
	for sequence := range s.sequences() {
		first, end := sequence*length, (sequence+1)*length
		if s.Starts != nil {
			first, end = s.Starts[sequence], s.Starts[sequence+1]
		}
		for h := range heads {
			q := ssmHead{scan: s, h: h, p: s.X.Shape[3], n: s.B.Shape[3], a: s.A.Data[h]}
			q.state = (sequence*heads + h) * q.p * q.n
			if s.D != nil {
				q.d = s.D.Data[h]
			}
			for t := first; t < end; t++ {
				q.steps = append(q.steps, ssmStep{(t*heads + h) * q.p, t*heads + h, (t*groups + h*groups/heads) * q.n})
			}
			f(q)
		}
	}
}

// states returns the state before the first step and after each step.
func (q ssmHead) states() [][]float64 {
	s := q.scan
	h := make([]float64, q.p*q.n)
	if s.State != nil {
		copy(h, s.State.Data[q.state:])
	}
	states := [][]float64{h}
	for _, at := range q.steps {
		dt := s.DT.Data[at.dt]
		decay, next := math.Exp(dt*q.a), make([]float64, len(h))
		for p := range q.p {
			for n := range q.n {
				next[p*q.n+n] = decay*h[p*q.n+n] + dt*s.X.Data[at.x+p]*s.B.Data[at.b+n]
			}
		}
		states, h = append(states, next), next
	}
	return states
}
