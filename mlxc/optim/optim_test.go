package optim_test

import (
	"math/rand/v2"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

type params struct {
	Weight *mlxc.Array
	Bias   *mlxc.Array
}

const size = 12 // of params

// random returns a tree of params and its elements.
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

// onCPU runs f on the CPU, which supports float64.
func onCPU(t *testing.T, f func()) {
	t.Helper()
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, f))
}

// Near 1, float16 has steps of 2⁻¹⁰ above and 2⁻¹¹ below, bfloat16 of 2⁻⁷ and 2⁻⁸: one update of 2e-4 is lost, but the
// sum of a hundred is not.
func TestMastersKeepSmallUpdates(t *testing.T) {
	for _, d := range []mlxc.DType{mlxc.Float16, mlxc.BFloat16} {
		one := mlxc.Ones(d, 3)
		require.Equal(t, []float64{1, 1, 1}, elements(t, one.SubScalar(2e-4)))
		gradient := mlxc.Ones(d, 3)

		sgd := optim.SGD[*mlxc.Array]{LearningRate: optim.Constant(2e-4)}
		p := one
		state, err := sgd.Init(p)
		require.NoError(t, err)
		adamW := optim.AdamW[*mlxc.Array]{LearningRate: optim.Constant(2e-4)}
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

// A gradient whose square overflows float16, and one whose square underflows.
func TestGradientsOf16BitsAreSquaredInFloat32(t *testing.T) {
	o := optim.AdamW[*mlxc.Array]{LearningRate: optim.Constant(0.125)}
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
			// A rate passed as an input, multiplied by a schedule.
			LearningRate: func(step *mlxc.Array) *mlxc.Array {
				return in.Rate.Mul(optim.CosineDecay(1, 0.1, 10)(step))
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
		if d == mlxc.Float16 { // with masters, the state is another tree
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

func TestEmptyParameters(t *testing.T) {
	o := optim.AdamW[[]*mlxc.Array]{LearningRate: optim.Constant(1)}
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

// Intermediate arrays of an update are freed at once.
func TestUpdatesFreeIntermediateArrays(t *testing.T) {
	p := mlxc.Ones(mlxc.Float32, 1<<16)
	o := optim.AdamW[*mlxc.Array]{LearningRate: optim.Constant(1e-3), WeightDecay: 0.1}
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
