package optim

import (
	"cmp"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019,
// algorithm 2, with the decay multiplied by the learning rate; Kingma and Ba, "Adam", 2015, algorithm 1). Update t,
// counted from 1, of a parameter θ with gradient g and learning rate η is
//
//	m ← β₁·m + (1−β₁)·g
//	v ← β₂·v + (1−β₂)·g²
//	θ ← θ − η·(m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε) + λ·θ)
//
// Only LearningRate must be set. Without WeightDecay it is Adam.
type AdamW[P any] struct {
	LearningRate Schedule // η
	Beta1        float64  // decay of the mean, above 0 and below 1; 0 means 0.9
	Beta2        float64  // decay of the variance, above 0 and below 1; 0 means 0.999
	Eps          float64  // ε, above 0; 0 means 1e-8
	WeightDecay  float64  // λ
	// ShouldDecay reports whether weight decay applies to the parameter with this name. Nil applies it to all
	// parameters. The weights of norms and biases are usually excluded.
	ShouldDecay func(name string) bool
}

// AdamWState is the state of AdamW between updates.
type AdamWState struct {
	Step     *mlxc.Array // number of updates so far, int32 of shape ()
	Mean     ByName      // m, in float32, or float64 for float64 parameters
	Variance ByName      // v, in the same dtypes
	Master   ByName      // float32 copies of the 16-bit parameters
}

// Init returns the state before the first update. It checks all settings but LearningRate, which only Update needs.
func (o AdamW[P]) Init(params P) (AdamWState, error) {
	const op = "optim.AdamW.Init"
	s := AdamWState{Step: mlxc.Scalar[int32](0)}
	_, err := o.settings(op)
	if err != nil {
		return AdamWState{}, err
	}
	if s.Mean, err = zeros(op, params); err != nil {
		return AdamWState{}, err
	}
	if s.Variance, err = zeros(op, params); err != nil {
		return AdamWState{}, err
	}
	s.Master, err = masters(op, params)
	return s, err
}

// adamWSettings holds the settings of an AdamW, with defaults applied.
type adamWSettings struct{ beta1, beta2, eps, decay float64 }

func (o AdamW[P]) settings(op string) (adamWSettings, error) {
	beta1, err1 := setting(op, "Beta1", o.Beta1, 0.9, 1)
	beta2, err2 := setting(op, "Beta2", o.Beta2, 0.999, 1)
	eps, err3 := setting(op, "Eps", o.Eps, 1e-8, math.Inf(1))
	decay, err4 := setting(op, "WeightDecay", o.WeightDecay, 0, math.Inf(1))
	return adamWSettings{beta1, beta2, eps, decay}, cmp.Or(err1, err2, err3, err4)
}

// Update returns the parameters and the state after one update. grads has the form and shapes of params; its dtypes may
// differ. The arguments are not freed.
func (o AdamW[P]) Update(params, grads P, state AdamWState) (P, AdamWState, error) {
	return scoped(func() (P, AdamWState, error) { return o.update(params, grads, state) })
}

func (o AdamW[P]) update(params, grads P, state AdamWState) (updated P, s AdamWState, err error) {
	const op = "optim.AdamW"
	with, err := o.settings(op)
	if err != nil {
		return updated, s, err
	}
	rate, err := rateAt(op, o.LearningRate, state.Step)
	if err != nil {
		return updated, s, err
	}
	s.Step = next(state.Step)
	t := s.Step.AsType(mlxc.Float32)
	// 1 − βᵗ, without cancellation for β near 1.
	correction1 := t.MulScalar(math.Log(with.beta1)).Expm1().Neg()
	correction2 := t.MulScalar(math.Log(with.beta2)).Expm1().Neg()
	updated, master, moments, err := update(op, params, grads, state.Master, []ByName{state.Mean, state.Variance},
		func(p *parameter) *mlxc.Array {
			g, d := p.grad, p.master.DType()
			m := p.moments[0].MulScalar(with.beta1).Add(g.MulScalar(1 - with.beta1))
			v := p.moments[1].MulScalar(with.beta2).Add(g.Square().MulScalar(1 - with.beta2))
			p.moments[0], p.moments[1] = m, v
			direction := m.Div(correction1.AsType(d)).Div(v.Div(correction2.AsType(d)).Sqrt().AddScalar(with.eps))
			if decayed(with.decay, o.ShouldDecay, p.name) {
				direction = direction.Add(p.master.MulScalar(with.decay))
			}
			return p.move(rate, direction)
		})
	if err != nil {
		return updated, s, err
	}
	s.Master, s.Mean, s.Variance = master, moments[0], moments[1]
	return updated, s, nil
}
