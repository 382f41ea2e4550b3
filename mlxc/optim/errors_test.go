package optim_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/stretchr/testify/require"
)

func TestErrors(t *testing.T) {
	p, _ := random(rand.New(rand.NewPCG(7, 8)), mlxc.Float32)
	good := optim.AdamW[params]{LearningRate: optim.Constant(0.1)}
	state, err := good.Init(p)
	require.NoError(t, err)
	half, _ := random(rand.New(rand.NewPCG(7, 8)), mlxc.Float16)
	for _, c := range []struct {
		optimizer     optim.AdamW[params]
		params, grads params
		state         optim.AdamWState
		message       string
	}{
		{optim.AdamW[params]{}, p, p, state, "mlxc: optim.AdamW: LearningRate is nil: set it, for example to " +
			"optim.Constant(1e-3)"},
		{
			optim.AdamW[params]{LearningRate: good.LearningRate, Beta1: 1},
			p, p, state,
			"mlxc: optim.AdamW: Beta1 is 1: it must be at least 0 and below 1",
		},
		{
			optim.AdamW[params]{LearningRate: good.LearningRate, Beta2: -1},
			p, p, state,
			"mlxc: optim.AdamW: Beta2 is -1: it must be at least 0 and below 1",
		},
		{
			optim.AdamW[params]{LearningRate: good.LearningRate, Eps: math.NaN()},
			p, p, state,
			"mlxc: optim.AdamW: Eps is NaN: it must be at least 0 and below +Inf",
		},
		{
			optim.AdamW[params]{LearningRate: good.LearningRate, WeightDecay: math.Inf(1)},
			p, p, state,
			"mlxc: optim.AdamW: WeightDecay is +Inf: it must be at least 0 and below +Inf",
		},
		{
			optim.AdamW[params]{LearningRate: optim.Linear(0, 1, 0)},
			p, p, state,
			"mlxc: optim.Linear: steps is 0: it must be positive",
		},
		{
			optim.AdamW[params]{LearningRate: optim.StepDecay(1, 0, 3)},
			p, p, state,
			"mlxc: optim.StepDecay: factor is 0 and every is 3: both must be positive",
		},
		{
			optim.AdamW[params]{LearningRate: optim.Constant(1).Then(0, good.LearningRate)},
			p, p, state,
			"mlxc: optim.Then: steps is 0: it must be positive",
		},
		{
			optim.AdamW[params]{LearningRate: optim.Constant(1).Then(3, nil)},
			p, p, state,
			"mlxc: optim.Then: a schedule is nil",
		},
		{
			optim.AdamW[params]{LearningRate: func(*mlxc.Array) *mlxc.Array { return mlxc.Ones(mlxc.Float32, 2) }},
			p, p, state,
			"mlxc: optim.AdamW float32(2): the schedule LearningRate must give a floating-point array of shape ()",
		},
		{good, p, params{Weight: p.Weight}, state, "tree: bias: the array is nil"},
		{
			good, p,
			params{p.Bias, p.Bias},
			state,
			"mlxc: optim.AdamW float32(2,4), float32(4): the gradient of weight must be floating-point and have its shape",
		},
		{
			good, p,
			params{p.Weight, mlxc.Zeros(mlxc.Int32, 4)},
			state,
			"mlxc: optim.AdamW float32(4), int32(4): the gradient of bias must be floating-point and have its shape",
		},
		{
			good, half, p, state,
			"mlxc: optim.AdamW float16(2,4): the state has no master of weight: make it with Init for these parameters",
		},
		{good, p, p, optim.AdamWState{}, "optim.AdamW: the state's Step: the array is nil: make the state with Init"},
		{
			good, p, p,
			optim.AdamWState{Step: state.Step},
			"mlxc: optim.AdamW float32(2,4): the state has no moment of weight: make it with Init for these parameters",
		},
	} {
		_, _, err := c.optimizer.Update(c.params, c.grads, c.state)
		requireMessage(t, err, c.message)
	}
	_, err = good.Init(params{p.Weight, mlxc.Zeros(mlxc.Int32, 4)})
	requireMessage(t, err, "mlxc: optim.AdamW.Init int32(4): bias is int32: parameters must be floating-point; "+
		"exclude it from the tree, or convert it with AsType")
	_, err = optim.SGD[params]{Momentum: 1}.Init(p)
	requireMessage(t, err, "mlxc: optim.SGD.Init: Momentum is 1: it must be at least 0 and below 1")
	_, err = optim.AdamW[params]{Beta1: 2}.Init(p)
	requireMessage(t, err, "mlxc: optim.AdamW.Init: Beta1 is 2: it must be at least 0 and below 1")
	_, _, err = optim.SGD[params]{LearningRate: good.LearningRate, Nesterov: true}.Update(p, p, optim.SGDState{})
	requireMessage(t, err, "mlxc: optim.SGD: Momentum is 0: it must be positive with Nesterov")
	_, _, err = optim.SGD[params]{LearningRate: good.LearningRate, Momentum: 1}.Update(p, p, optim.SGDState{})
	requireMessage(t, err, "mlxc: optim.SGD: Momentum is 1: it must be at least 0 and below 1")
	list := optim.SGD[[]*mlxc.Array]{LearningRate: good.LearningRate}
	s, err := list.Init([]*mlxc.Array{p.Weight})
	require.NoError(t, err)
	_, _, err = list.Update([]*mlxc.Array{p.Weight}, []*mlxc.Array{p.Weight, p.Bias}, s)
	requireMessage(t, err, "mlxc: optim.SGD: the gradients are named [0 1], but the parameters [0]")
}

// A state must match the parameters exactly.
func TestStatesOfOtherParameters(t *testing.T) {
	a := mlxc.Ones(mlxc.Float32, 2)
	two := []*mlxc.Array{a, a}
	o := optim.AdamW[[]*mlxc.Array]{LearningRate: optim.Constant(0.1)}
	state, err := o.Init(two)
	require.NoError(t, err)
	_, _, err = o.Update(two[:1], two[:1], state)
	requireMessage(t, err, "mlxc: optim.AdamW: the state has more parameters than the tree: make it with Init for "+
		"these parameters")
	state, err = o.Init(two[:1])
	require.NoError(t, err)
	_, _, err = o.Update(two, two, state)
	requireMessage(t, err, "mlxc: optim.AdamW float32(2): the state has no moment of 1: make it with Init for these "+
		"parameters")
	with := optim.SGD[[]*mlxc.Array]{LearningRate: optim.Constant(0.1), Momentum: 0.5}
	without, err := optim.SGD[[]*mlxc.Array]{}.Init(two)
	require.NoError(t, err)
	_, _, err = with.Update(two, two, without)
	requireMessage(t, err, "mlxc: optim.SGD float32(2): the state has no moment of 0: make it with Init for these "+
		"parameters")
}

// requireMessage requires the message of an error. An mlxc.Error ends with its caller.
func requireMessage(t *testing.T, err error, want string) {
	t.Helper()
	if e := (*mlxc.Error)(nil); !errors.As(err, &e) { // of package tree
		require.EqualError(t, err, want)
		return
	}
	text, caller, _ := strings.Cut(err.Error(), " (at ")
	require.Equal(t, want, text)
	require.Regexp(t, `^optim/\w+_test\.go:\d+\)$`, caller)
}
