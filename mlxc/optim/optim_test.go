package optim_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

type params struct {
	Weight *mlxc.Array
	Bias   *mlxc.Array
}

const size = 12 // of params

// random is a tree of params and its elements.
func random(r *rand.Rand, d mlxc.DType) (params, []float64) {
	all := make([]float32, size)
	wide := make([]float64, size)
	for i := range all {
		all[i] = float32(r.NormFloat64())
		wide[i] = float64(all[i])
	}
	return params{
		mlxc.FromSlice(all[:8], 2, 4).AsType(d),
		mlxc.FromSlice(all[8:], 4).AsType(d),
	}, wide
}

func elements[T any](t *testing.T, tr T) []float64 {
	t.Helper()
	arrays, err := tree.Flatten(tr)
	require.NoError(t, err)
	var all []float64
	for _, a := range arrays {
		v, err := mlxc.ToSlice[float64](a.AsType(mlxc.Float64))
		require.NoError(t, err)
		all = append(all, v...)
	}
	return all
}

func item(t *testing.T, a *mlxc.Array) float64 {
	t.Helper()
	return elements(t, a)[0]
}

// onCPU runs f where float64 is to be had.
func onCPU(t *testing.T, f func()) {
	t.Helper()
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, f))
}

// adamW is the update of one element in float64.
type adamW struct{ m, v float64 }

func (s *adamW) update(p, g float64, t int, rate, beta1, beta2, eps, decay float64) float64 {
	s.m = beta1*s.m + (1-beta1)*g
	s.v = beta2*s.v + (1-beta2)*g*g
	mean := s.m / (1 - math.Pow(beta1, float64(t)))
	variance := s.v / (1 - math.Pow(beta2, float64(t)))
	return p - rate*(mean/(math.Sqrt(variance)+eps)+decay*p)
}

func TestAdamWAgainstFloat64(t *testing.T) {
	for _, c := range []struct {
		optimiser                optim.AdamW[params]
		beta1, beta2, eps, decay float64
	}{
		{optim.AdamW[params]{}, 0.9, 0.999, 1e-8, 0},
		{optim.AdamW[params]{Beta1: 0.8, Beta2: 0.95, Eps: 1e-3, WeightDecay: 0.1}, 0.8, 0.95, 1e-3, 0.1},
		{optim.AdamW[params]{WeightDecay: 0.1, Decays: func(name string) bool { return name == "weight" }}, 0.9, 0.999, 1e-8, 0.1},
	} {
		for d, tolerance := range map[mlxc.DType]float64{mlxc.Float32: 2e-6, mlxc.Float64: 2e-6} {
			r := rand.New(rand.NewPCG(1, 2))
			onCPU(t, func() {
				p, want := random(r, d)
				o := c.optimiser
				rate := func(step int) float64 { return 0.1 * math.Pow(0.5, float64(step)/10) }
				o.Rate = optim.Exponential(0.1, math.Pow(0.5, 0.1))
				state, err := o.Init(p)
				require.NoError(t, err)
				oracle := make([]adamW, size)
				for step := range 30 {
					grads, g := random(r, d)
					p, state, err = o.Update(p, grads, state)
					require.NoError(t, err)
					for i := range want {
						decay := c.decay
						if o.Decays != nil && i >= 8 {
							decay = 0
						}
						want[i] = oracle[i].update(want[i], g[i], step+1, rate(step), c.beta1, c.beta2, c.eps, decay)
					}
					require.InDeltaSlice(t, want, elements(t, p), tolerance)
				}
				require.Equal(t, 30.0, item(t, state.Step))
				require.Equal(t, d, p.Weight.DType())
				require.Equal(t, d, state.Mean["weight"].DType())
			})
		}
	}
}

// The first updates by hand: m̂ and v̂ are g and g² at first; then m̂ = (0.9·0.05 −
// 0.05)/0.19 = −1/38 and v̂ = 0.25, with g = ½ and −½.
func TestAdamWFirstUpdates(t *testing.T) {
	o := optim.AdamW[*mlxc.Array]{Rate: optim.Constant(0.1), WeightDecay: 0.01}
	p := mlxc.Scalar[float32](1)
	state, err := o.Init(p)
	require.NoError(t, err)
	p, state, err = o.Update(p, mlxc.Scalar[float32](0.5), state)
	require.NoError(t, err)
	require.InDelta(t, 1-0.1*(1+0.01), item(t, p), 1e-7)
	require.InDelta(t, 0.05, item(t, state.Mean[""]), 1e-8)
	require.InDelta(t, 0.00025, item(t, state.Variance[""]), 1e-10)
	p, state, err = o.Update(p, mlxc.Scalar[float32](-0.5), state)
	require.NoError(t, err)
	require.InDelta(t, 0.899-0.1*(-1.0/19+0.01*0.899), item(t, p), 1e-7)
	require.Equal(t, 2.0, item(t, state.Step))
}

func TestSGDAgainstFloat64(t *testing.T) {
	for _, o := range []optim.SGD[params]{
		{},
		{Momentum: 0.9},
		{Momentum: 0.9, Nesterov: true},
		{Momentum: 0.5, WeightDecay: 0.1},
		{Momentum: 0.5, Nesterov: true, WeightDecay: 0.1, Decays: func(name string) bool { return name == "bias" }},
	} {
		t.Run(fmt.Sprintf("momentum %v nesterov %v decay %v", o.Momentum, o.Nesterov, o.WeightDecay), func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			o.Rate = optim.Linear(0, 0.1, 5)
			p, want := random(r, mlxc.Float32)
			state, err := o.Init(p)
			require.NoError(t, err)
			velocity := make([]float64, size)
			for step := range 20 {
				grads, g := random(r, mlxc.Float32)
				p, state, err = o.Update(p, grads, state)
				require.NoError(t, err)
				rate := 0.1 * math.Min(float64(step)/5, 1)
				for i := range want {
					if o.Decays == nil || i >= 8 {
						g[i] += o.WeightDecay * want[i]
					}
					velocity[i] = o.Momentum*velocity[i] + g[i]
					along := velocity[i]
					if o.Nesterov {
						along = g[i] + o.Momentum*velocity[i]
					}
					want[i] -= rate * along
				}
				require.InDeltaSlice(t, want, elements(t, p), 2e-6)
				if o.Momentum > 0 {
					v := append(elements(t, state.Velocity["weight"]), elements(t, state.Velocity["bias"])...)
					require.InDeltaSlice(t, velocity, v, 4e-6)
				} else {
					require.Empty(t, state.Velocity)
				}
			}
		})
	}
}

// v = 1, then 0.5·1 + 2 = 2.5, with a rate of 0.1 and Nesterov's look ahead.
func TestSGDFirstUpdates(t *testing.T) {
	for _, c := range []struct {
		nesterov bool
		want     [2]float64
	}{
		{false, [2]float64{10 - 0.1, 10 - 0.1 - 0.25}},
		{true, [2]float64{10 - 0.15, 10 - 0.15 - 0.1*(2+1.25)}},
	} {
		o := optim.SGD[*mlxc.Array]{Rate: optim.Constant(0.1), Momentum: 0.5, Nesterov: c.nesterov}
		p := mlxc.Scalar[float32](10)
		state, err := o.Init(p)
		require.NoError(t, err)
		for i, g := range []float32{1, 2} {
			p, state, err = o.Update(p, mlxc.Scalar(g), state)
			require.NoError(t, err)
			require.InDelta(t, c.want[i], item(t, p), 2e-6)
		}
	}
}

// Near 1, float16 has steps of 2⁻¹⁰ above and 2⁻¹¹ below, bfloat16 of 2⁻⁷ and 2⁻⁸: an
// update of 2e-4 is lost, but a hundred of them are not.
func TestMastersKeepSmallUpdates(t *testing.T) {
	for _, d := range []mlxc.DType{mlxc.Float16, mlxc.BFloat16} {
		one := mlxc.Ones(d, 3)
		require.Equal(t, []float64{1, 1, 1}, elements(t, one.SubScalar(2e-4)))
		gradient := mlxc.Ones(d, 3)

		sgd := optim.SGD[*mlxc.Array]{Rate: optim.Constant(2e-4)}
		p := one
		state, err := sgd.Init(p)
		require.NoError(t, err)
		adamW := optim.AdamW[*mlxc.Array]{Rate: optim.Constant(2e-4)}
		q := one
		adamState, err := adamW.Init(q)
		require.NoError(t, err)
		require.Equal(t, mlxc.Float32, adamState.Mean[""].DType())
		const updates = 100
		for range updates {
			mlxc.WithScope(func() {
				p, state, err = sgd.Update(p, gradient, state)
				require.NoError(t, err)
				q, adamState, err = adamW.Update(q, gradient, adamState)
				require.NoError(t, err)
				require.NoError(t, tree.Eval([]any{p, state, q, adamState}))
				require.NoError(t, tree.Keep([]any{p, state, q, adamState}))
			})
		}
		require.Equal(t, d, p.DType())
		require.Equal(t, d, q.DType())
		require.InDelta(t, 0.98, item(t, state.Master[""]), 1e-5)
		require.InDelta(t, 0.98, item(t, adamState.Master[""]), 1e-5)
		want := item(t, mlxc.Scalar[float32](0.98).AsType(d))
		require.Equal(t, want, item(t, p))
		require.Equal(t, want, item(t, q))
	}
}

// A gradient whose square is beyond float16, and one whose square is below it.
func TestGradientsOf16BitsAreSquaredInFloat32(t *testing.T) {
	o := optim.AdamW[*mlxc.Array]{Rate: optim.Constant(0.125)}
	p := mlxc.FromSlice([]float16.Float16{float16.Fromfloat32(1), float16.Fromfloat32(1)})
	state, err := o.Init(p)
	require.NoError(t, err)
	g := mlxc.FromSlice([]float16.Float16{float16.Fromfloat32(60000), float16.Fromfloat32(-1e-4)})
	p, _, err = o.Update(p, g, state)
	require.NoError(t, err)
	require.Equal(t, []float64{0.875, 1.125}, elements(t, p))
}

func TestUpdateInsideCompile(t *testing.T) {
	type training struct {
		Params params
		State  optim.AdamWState
		Grads  params
		Rate   *mlxc.Array
	}
	traces := 0
	update := func(in training) (training, error) {
		traces++
		o := optim.AdamW[params]{
			// A rate from outside, and a schedule.
			Rate: func(step *mlxc.Array) *mlxc.Array {
				return in.Rate.Mul(optim.Cosine(1, 0.1, 10)(step))
			},
			WeightDecay: 0.1,
		}
		grads, _, err := optim.ClipByGlobalNorm(in.Grads, 1)
		if err != nil {
			return training{}, err
		}
		in.Params, in.State, err = o.Update(in.Params, grads, in.State)
		return in, err
	}
	compiled := tree.Compile(update)
	for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16} {
		r := rand.New(rand.NewPCG(5, 6))
		p, _ := random(r, d)
		state, err := optim.AdamW[params]{}.Init(p)
		require.NoError(t, err)
		if d == mlxc.Float16 { // with masters it is another tree
			compiled.Close()
			compiled = tree.Compile(update)
		}
		eager := training{Params: p, State: state}
		fused := eager
		before := traces
		for step := range 12 {
			grads, _ := random(r, d)
			rate := mlxc.Scalar(0.1 / float32(step+1))
			eager.Grads, eager.Rate, fused.Grads, fused.Rate = grads, rate, grads, rate
			eager, err = update(eager)
			require.NoError(t, err)
			fused, err = compiled.Call(fused)
			require.NoError(t, err)
			require.InDeltaSlice(t, elements(t, eager), elements(t, fused), 1e-6)
		}
		require.Equal(t, before+12+1, traces)
	}
	compiled.Close()
}

func TestGlobalNorm(t *testing.T) {
	g := params{mlxc.FromSlice([]float32{3, 0, 0, 0}), mlxc.FromSlice([]float32{0, -4})}
	norm, err := optim.GlobalNorm(g)
	require.NoError(t, err)
	require.Equal(t, 5.0, item(t, norm))
	require.Equal(t, 0, norm.NDim())

	clipped, norm, err := optim.ClipByGlobalNorm(g, 1)
	require.NoError(t, err)
	require.Equal(t, 5.0, item(t, norm))
	require.InDeltaSlice(t, []float64{0.6, 0, 0, 0, 0, -0.8}, elements(t, clipped), 1e-7)
	clipped, _, err = optim.ClipByGlobalNorm(g, 5)
	require.NoError(t, err)
	require.Equal(t, elements(t, g), elements(t, clipped))
	clipped, _, err = optim.ClipByGlobalNorm(params{mlxc.Zeros(mlxc.Float32, 2), mlxc.Zeros(mlxc.Float32, 1)}, 1)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 0, 0}, elements(t, clipped))

	// Beyond float16 in between.
	large := mlxc.Full(mlxc.Float16, mlxc.Scalar[float32](60000), 4)
	half, norm, err := optim.ClipByGlobalNorm(large, 2)
	require.NoError(t, err)
	require.InEpsilon(t, 120000, item(t, norm), 1e-3)
	require.Equal(t, mlxc.Float16, half.DType())
	require.Equal(t, []float64{1, 1, 1, 1}, elements(t, half))

	nan, norm, err := optim.ClipByGlobalNorm(params{mlxc.FromSlice([]float32{float32(math.NaN())}), mlxc.FromSlice([]float32{1})}, 1)
	require.NoError(t, err)
	require.True(t, math.IsNaN(item(t, norm)))
	require.True(t, math.IsNaN(elements(t, nan)[1]))

	for _, x := range []float32{1e30, float32(math.Inf(1))} {
		nan, norm, err = optim.ClipByGlobalNorm(params{mlxc.FromSlice([]float32{x}), mlxc.FromSlice([]float32{1})}, 1)
		require.NoError(t, err)
		require.True(t, math.IsInf(item(t, norm), 1))
		for _, v := range elements(t, nan) {
			require.True(t, math.IsNaN(v))
		}
	}
	_, _, err = optim.ClipByGlobalNorm(g, 0)
	requireMessage(t, err, "mlxc: optim.ClipByGlobalNorm: the limit is 0: it must be positive")
	_, _, err = optim.ClipByGlobalNorm(params{}, 1)
	require.ErrorIs(t, err, mlxc.ErrNil)
}

func TestSchedules(t *testing.T) {
	for name, c := range map[string]struct {
		schedule optim.Schedule
		want     func(t float64) float64
	}{
		"constant": {optim.Constant(0.3), func(float64) float64 { return 0.3 }},
		"linear":   {optim.Linear(0.1, 0.5, 8), func(t float64) float64 { return 0.1 + 0.4*math.Min(t/8, 1) }},
		"cosine": {optim.Cosine(0.5, 0.1, 10), func(t float64) float64 {
			return 0.1 + 0.4*(1+math.Cos(math.Pi*math.Min(t, 10)/10))/2
		}},
		"exponential": {optim.Exponential(0.5, 0.9), func(t float64) float64 { return 0.5 * math.Pow(0.9, t) }},
		"step":        {optim.Step(0.5, 0.1, 4), func(t float64) float64 { return 0.5 * math.Pow(0.1, math.Floor(t/4)) }},
		"joined": {optim.Linear(0, 1, 3).Then(3, optim.Constant(1)).Then(5, optim.Exponential(1, 0.5)), func(t float64) float64 {
			switch {
			case t < 3:
				return t / 3
			case t < 5:
				return 1
			}
			return math.Pow(0.5, t-5)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			compiled := tree.Compile(func(step *mlxc.Array) (*mlxc.Array, error) { return c.schedule(step), nil })
			defer compiled.Close()
			for step := range int32(20) {
				rate := c.schedule(mlxc.Scalar(step))
				require.Equal(t, mlxc.Float32, rate.DType())
				require.Equal(t, 0, rate.NDim())
				want := c.want(float64(step))
				require.InDelta(t, want, item(t, rate), 1e-6*want+1e-9)
				again, err := compiled.Call(mlxc.Scalar(step))
				require.NoError(t, err)
				require.InDelta(t, want, item(t, again), 1e-6*want+1e-9)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	p, _ := random(rand.New(rand.NewPCG(7, 8)), mlxc.Float32)
	good := optim.AdamW[params]{Rate: optim.Constant(0.1)}
	state, err := good.Init(p)
	require.NoError(t, err)
	half, _ := random(rand.New(rand.NewPCG(7, 8)), mlxc.Float16)
	for _, c := range []struct {
		optimiser     optim.AdamW[params]
		params, grads params
		state         optim.AdamWState
		message       string
	}{
		{optim.AdamW[params]{}, p, p, state, "mlxc: optim.AdamW: there is no learning rate: set Rate, to optim.Constant(1e-3) say"},
		{optim.AdamW[params]{Rate: good.Rate, Beta1: 1}, p, p, state, "mlxc: optim.AdamW: Beta1 is 1: it must be at least 0 and below 1"},
		{optim.AdamW[params]{Rate: good.Rate, Beta2: -1}, p, p, state, "mlxc: optim.AdamW: Beta2 is -1: it must be at least 0 and below 1"},
		{optim.AdamW[params]{Rate: good.Rate, Eps: math.NaN()}, p, p, state, "mlxc: optim.AdamW: Eps is NaN: it must be at least 0 and below +Inf"},
		{optim.AdamW[params]{Rate: good.Rate, WeightDecay: math.Inf(1)}, p, p, state, "mlxc: optim.AdamW: WeightDecay is +Inf: it must be at least 0 and below +Inf"},
		{optim.AdamW[params]{Rate: optim.Linear(0, 1, 0)}, p, p, state, "mlxc: optim.Linear: it has 0 steps: there must be one at least"},
		{optim.AdamW[params]{Rate: optim.Step(1, 0, 3)}, p, p, state, "mlxc: optim.Step: the factor is 0 and holds for 3 updates: both must be positive"},
		{optim.AdamW[params]{Rate: optim.Constant(1).Then(0, good.Rate)}, p, p, state, "mlxc: optim.Then: the first schedule has 0 steps: there must be one at least"},
		{optim.AdamW[params]{Rate: optim.Constant(1).Then(3, nil)}, p, p, state, "mlxc: optim.Then: a schedule is nil"},
		{
			optim.AdamW[params]{Rate: func(*mlxc.Array) *mlxc.Array { return mlxc.Ones(mlxc.Float32, 2) }},
			p, p, state,
			"mlxc: optim.AdamW float32(2): the schedule Rate must give a floating-point array of shape ()",
		},
		{good, p, params{Weight: p.Weight}, state, "tree: bias: the array is nil"},
		{
			good, p,
			params{p.Bias, p.Bias},
			state,
			"mlxc: optim.AdamW float32(2,4), float32(4): the gradient of weight must be floating-point and of its shape",
		},
		{
			good, p,
			params{p.Weight, mlxc.Zeros(mlxc.Int32, 4)},
			state,
			"mlxc: optim.AdamW float32(4), int32(4): the gradient of bias must be floating-point and of its shape",
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
		_, _, err := c.optimiser.Update(c.params, c.grads, c.state)
		requireMessage(t, err, c.message)
	}
	_, err = good.Init(params{p.Weight, mlxc.Zeros(mlxc.Int32, 4)})
	requireMessage(t, err, "mlxc: optim.AdamW.Init int32(4): bias is int32: parameters are floating-point; leave it out of the tree, or convert it with AsType")
	_, err = optim.SGD[params]{Momentum: 1}.Init(p)
	requireMessage(t, err, "mlxc: optim.SGD.Init: Momentum is 1: it must be at least 0 and below 1")
	_, err = optim.AdamW[params]{Beta1: 2}.Init(p)
	requireMessage(t, err, "mlxc: optim.AdamW.Init: Beta1 is 2: it must be at least 0 and below 1")
	_, _, err = optim.SGD[params]{Rate: good.Rate, Nesterov: true}.Update(p, p, optim.SGDState{})
	requireMessage(t, err, "mlxc: optim.SGD: with Nesterov there must be a Momentum, but it is 0")
	_, _, err = optim.SGD[params]{Rate: good.Rate, Momentum: 1}.Update(p, p, optim.SGDState{})
	requireMessage(t, err, "mlxc: optim.SGD: Momentum is 1: it must be at least 0 and below 1")
	list := optim.SGD[[]*mlxc.Array]{Rate: good.Rate}
	s, err := list.Init([]*mlxc.Array{p.Weight})
	require.NoError(t, err)
	_, _, err = list.Update([]*mlxc.Array{p.Weight}, []*mlxc.Array{p.Weight, p.Bias}, s)
	requireMessage(t, err, "mlxc: optim.SGD: the gradients are named [0 1], and the parameters [0]")
}

// A state must be for the parameters, no more and no fewer.
func TestStatesOfOtherParameters(t *testing.T) {
	a := mlxc.Ones(mlxc.Float32, 2)
	two := []*mlxc.Array{a, a}
	o := optim.AdamW[[]*mlxc.Array]{Rate: optim.Constant(0.1)}
	state, err := o.Init(two)
	require.NoError(t, err)
	_, _, err = o.Update(two[:1], two[:1], state)
	requireMessage(t, err, "mlxc: optim.AdamW: the state is for more parameters than there are: make it with Init for these")
	state, err = o.Init(two[:1])
	require.NoError(t, err)
	_, _, err = o.Update(two, two, state)
	requireMessage(t, err, "mlxc: optim.AdamW float32(2): the state has no moment of 1: make it with Init for these parameters")
	with := optim.SGD[[]*mlxc.Array]{Rate: optim.Constant(0.1), Momentum: 0.5}
	without, err := optim.SGD[[]*mlxc.Array]{}.Init(two)
	require.NoError(t, err)
	_, _, err = with.Update(two, two, without)
	requireMessage(t, err, "mlxc: optim.SGD float32(2): the state has no moment of 0: make it with Init for these parameters")
}

func TestEmptyParameters(t *testing.T) {
	o := optim.AdamW[[]*mlxc.Array]{Rate: optim.Constant(1)}
	for _, p := range [][]*mlxc.Array{nil, {mlxc.Zeros(mlxc.Float16, 0, 3)}} {
		state, err := o.Init(p)
		require.NoError(t, err)
		p, state, err = o.Update(p, p, state)
		require.NoError(t, err)
		require.NoError(t, tree.Eval(p))
		require.NoError(t, tree.Eval(state))
		require.Equal(t, 1.0, item(t, state.Step))
		norm, err := optim.GlobalNorm(p)
		require.NoError(t, err)
		require.Zero(t, item(t, norm))
	}
}

// What an update makes besides its results is given back at once.
func TestUpdatesLeaveNothingBehind(t *testing.T) {
	p := mlxc.Ones(mlxc.Float32, 1<<16)
	o := optim.AdamW[*mlxc.Array]{Rate: optim.Constant(1e-3), WeightDecay: 0.1}
	state, err := o.Init(p)
	require.NoError(t, err)
	require.NoError(t, tree.Eval(state))
	require.NoError(t, p.Err())
	g := p
	var before int
	for i := range 20 {
		updated, newState, err := o.Update(p, g, state)
		require.NoError(t, err)
		require.NoError(t, tree.Eval(updated))
		require.NoError(t, tree.Eval(newState))
		if i > 0 {
			p.Free()
		}
		require.NoError(t, tree.Free(state))
		p, state = updated, newState
		if i == 2 {
			before = mlxc.ActiveMemory()
		}
	}
	require.LessOrEqual(t, mlxc.ActiveMemory(), before+p.NBytes()/2)
}

// requireMessage requires the message of an error. That of an mlxc.Error ends in its caller.
func requireMessage(t *testing.T, err error, want string) {
	t.Helper()
	if e := (*mlxc.Error)(nil); !errors.As(err, &e) { // of package tree
		require.EqualError(t, err, want)
		return
	}
	text, caller, _ := strings.Cut(err.Error(), " (at ")
	require.Equal(t, want, text)
	require.Contains(t, caller, "optim/optim_test.go:")
}
