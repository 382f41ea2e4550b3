package optim

import (
	"cmp"
	"errors"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// SGD is stochastic gradient descent with momentum. The update of a parameter θ with gradient g and learning rate η is
//
//	g ← g + λ·θ
//	v ← μ·v + g
//	θ ← θ − η·v
//
// with v = 0 initially. Nesterov momentum uses θ ← θ − η·(g + μ·v) instead (Sutskever et al., "On the importance of
// initialization and momentum in deep learning", 2013, section 2; as in PyTorch and MLX, the learning rate is not part
// of v). The decay is the gradient of an L2 penalty, λ/2·θ².
//
// Only LearningRate must be set.
type SGD[P any] struct {
	LearningRate Schedule // η
	Momentum     float64  // μ, below 1
	Nesterov     bool     // requires Momentum
	WeightDecay  float64  // λ
	// ShouldDecay reports whether weight decay applies to the parameter with this name. Nil applies it to all
	// parameters. The weights of norms and biases are usually excluded.
	ShouldDecay func(name string) bool
}

// SGDState is the state of SGD between updates.
type SGDState struct {
	Step     *mlxc.Array // number of updates so far, int32 of shape ()
	Velocity ByName      // v, in float32, or float64 for float64 parameters; empty without momentum
	Master   ByName      // float32 copies of the 16-bit parameters
}

// Init returns the state before the first update. It checks all settings but LearningRate, which only Update needs.
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
		err = mlxc.NewError(op, errors.New("Momentum is 0: it must be positive with Nesterov"))
	}
	return momentum, decay, cmp.Or(err1, err2, err)
}

// Update returns the parameters and the state after one update. grads has the form and shapes of params; its dtypes may
// differ. The arguments are not freed.
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
