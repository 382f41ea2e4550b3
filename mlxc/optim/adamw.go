package optim

import (
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled Weight
// Decay Regularization", 2019, algorithm 2, with the decay multiplied by the learning
// rate; Kingma and Ba, "Adam", 2015, algorithm 1). Its update t, counted from 1, of a
// parameter θ with the gradient g and the learning rate η is
//
//	m ← β₁·m + (1−β₁)·g
//	v ← β₂·v + (1−β₂)·g²
//	θ ← θ − η·(m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε) + λ·θ)
//
// Only Rate must be set.
type AdamW[P any] struct {
	Rate        Schedule // η
	Beta1       float64  // of the mean, below 1; 0 stands for 0.9
	Beta2       float64  // of the variance, below 1; 0 stands for 0.999
	Eps         float64  // ε; 0 stands for 1e-8
	WeightDecay float64  // λ
	// Decays tells by its name whether a parameter is decayed; nil for all. Norms and
	// biases usually are not.
	Decays func(name string) bool
}

// AdamWState is what AdamW keeps from one update to the next.
type AdamWState[P any] struct {
	Step     *mlxc.Array // the number of updates so far, int32 of shape ()
	Mean     P           // m, float32, or float64 for parameters that are
	Variance P           // v, likewise
	Master   Masters     // of parameters of 16 bits
}

// Init makes the state for the first update.
func (o AdamW[P]) Init(params P) (AdamWState[P], error) {
	s := AdamWState[P]{Step: mlxc.Scalar[int32](0)}
	var err error
	if s.Master, err = newMasters("optim.AdamW.Init", params); err != nil {
		return AdamWState[P]{}, err
	}
	if s.Mean, err = zeros(params); err != nil {
		return AdamWState[P]{}, err
	}
	s.Variance, err = zeros(params)
	return s, err
}

// Update makes one update. grads has the form and the shapes of params; its dtypes may
// be others.
func (o AdamW[P]) Update(params, grads P, state AdamWState[P]) (updated P, s AdamWState[P], err error) {
	const op = "optim.AdamW"
	beta1, err := setting(op, "Beta1", o.Beta1, 0.9, 1)
	if err != nil {
		return updated, s, err
	}
	beta2, err := setting(op, "Beta2", o.Beta2, 0.999, 1)
	if err != nil {
		return updated, s, err
	}
	eps, err := setting(op, "Eps", o.Eps, 1e-8, math.Inf(1))
	if err != nil {
		return updated, s, err
	}
	decay, err := setting(op, "WeightDecay", o.WeightDecay, 0, math.Inf(1))
	if err != nil {
		return updated, s, err
	}
	mlxc.WithScope(func() {
		var rate *mlxc.Array
		if rate, err = rateAt(op, o.Rate, state.Step); err != nil {
			return
		}
		s.Step = next(state.Step)
		t := s.Step.AsType(mlxc.Float32)
		// 1 − βᵗ, without cancellation where β is near 1.
		correction1 := t.MulScalar(math.Log(beta1)).Expm1().Neg()
		correction2 := t.MulScalar(math.Log(beta2)).Expm1().Neg()
		var moments []P
		updated, s.Master, moments, err = update(op, params, grads, state.Master, []P{state.Mean, state.Variance}, func(p *parameter) *mlxc.Array {
			g := p.grad
			m := p.moments[0].MulScalar(beta1).Add(g.MulScalar(1 - beta1))
			v := p.moments[1].MulScalar(beta2).Add(g.Square().MulScalar(1 - beta2))
			p.moments[0], p.moments[1] = m, v
			d := p.master.DType()
			along := m.Div(correction1.AsType(d)).Div(v.Div(correction2.AsType(d)).Sqrt().AddScalar(eps))
			if decay > 0 && (o.Decays == nil || o.Decays(p.name)) {
				along = along.Add(p.master.MulScalar(decay))
			}
			return p.move(rate, along)
		})
		if err != nil {
			return
		}
		s.Mean, s.Variance = moments[0], moments[1]
		err = keep(updated, s)
	})
	return updated, s, err
}

func keep[P, S any](params P, state S) error {
	if err := tree.Keep(params); err != nil {
		return err
	}
	return tree.Keep(state)
}
