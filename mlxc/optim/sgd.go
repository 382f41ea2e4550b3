package optim

import (
	"cmp"
	"errors"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// SGD is stochastic gradient descent with momentum. The update of a parameter θ with the
// gradient g and the learning rate η is
//
//	g ← g + λ·θ
//	v ← μ·v + g
//	θ ← θ − η·v
//
// with v = 0 at first, and with Nesterov's momentum θ ← θ − η·(g + μ·v) instead
// (Sutskever et al., "On the importance of initialization and momentum in deep
// learning", 2013, section 2, with the learning rate taken out of v, as PyTorch and MLX
// do). The decay is that of an L2 penalty, λ/2·θ².
//
// Only LearningRate must be set.
type SGD[P any] struct {
	LearningRate Schedule // η
	Momentum     float64  // μ, below 1
	Nesterov     bool     // only with momentum
	WeightDecay  float64  // λ
	// ShouldDecay tells by its name whether a parameter is decayed; nil for all. Norms and
	// biases usually are not.
	ShouldDecay func(name string) bool
}

// SGDState is what SGD keeps from one update to the next.
type SGDState struct {
	Step     *mlxc.Array // the number of updates so far, int32 of shape ()
	Velocity ByName      // v, float32, or float64 for parameters that are; empty without momentum
	Master   ByName      // the float32 copies of parameters of 16 bits
}

// Init makes the state for the first update. It looks at the settings, but for LearningRate, which only
// Update needs.
func (o SGD[P]) Init(params P) (SGDState, error) {
	const op = "optim.SGD.Init"
	s := SGDState{Step: mlxc.Scalar[int32](0), Velocity: ByName{}}
	_, _, err := o.settings(op)
	if err != nil {
		return SGDState{}, err
	}
	if s.Master, err = masters(op, params); err != nil {
		return SGDState{}, err
	}
	if o.Momentum != 0 {
		s.Velocity, err = zeros(op, params)
	}
	return s, err
}

func (o SGD[P]) settings(op string) (momentum, decay float64, err error) {
	momentum, err1 := setting(op, "Momentum", o.Momentum, 0, 1)
	decay, err2 := setting(op, "WeightDecay", o.WeightDecay, 0, math.Inf(1))
	if momentum == 0 && o.Nesterov {
		err = mlxc.NewError(op, errors.New("with Nesterov there must be a Momentum, but it is 0"))
	}
	return momentum, decay, cmp.Or(err1, err2, err)
}

// Update makes one update. grads has the form and the shapes of params; its dtypes may
// be others.
func (o SGD[P]) Update(params, grads P, state SGDState) (P, SGDState, error) {
	return scoped(func() (P, SGDState, error) { return o.update(params, grads, state) })
}

func (o SGD[P]) update(params, grads P, state SGDState) (updated P, s SGDState, err error) {
	const op = "optim.SGD"
	momentum, decay, err := o.settings(op)
	if err != nil {
		return updated, s, err
	}
	var moments []ByName
	if momentum > 0 {
		moments = []ByName{state.Velocity}
	}
	rate, err := rateAt(op, o.LearningRate, state.Step)
	if err != nil {
		return updated, s, err
	}
	s.Step = next(state.Step)
	updated, s.Master, moments, err = update(op, params, grads, state.Master, moments, func(p *parameter) *mlxc.Array {
		g := p.grad
		if decayed(decay, o.ShouldDecay, p.name) {
			g = g.Add(p.master.MulScalar(decay))
		}
		if momentum == 0 {
			return p.move(rate, g)
		}
		v := p.moments[0].MulScalar(momentum).Add(g)
		p.moments[0] = v
		if o.Nesterov {
			return p.move(rate, v.MulScalar(momentum).Add(g))
		}
		return p.move(rate, v)
	})
	if err != nil {
		return updated, s, err
	}
	s.Velocity = ByName{}
	if momentum > 0 {
		s.Velocity = moments[0]
	}
	return updated, s, nil
}
