package optim_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// batch is a batch of a linear function with 2 inputs and 4 outputs.
type batch struct{ X, Y *mlxc.Array }

func linearLoss(p params, b batch) *mlxc.Array {
	return b.X.MatMul(p.Weight).Add(p.Bias).Sub(b.Y).Square().Mean()
}

func batches(n int) []batch {
	all := make([]batch, n)
	for i := range all {
		key := uint64(2 * i)
		all[i] = batch{
			mlxc.RandomNormal(mlxc.RandomKey(key), mlxc.Float32, 3, 2),
			mlxc.RandomNormal(mlxc.RandomKey(key+1), mlxc.Float32, 3, 4),
		}
	}
	return all
}

// withoutFusing lets compiled functions run without g++, which builds fused operations for seconds.
func withoutFusing(t *testing.T) {
	t.Helper()
	before, err := mlxc.SetCompileMode(mlxc.CompileNoFuse)
	require.NoError(t, err)
	t.Cleanup(func() { _, err := mlxc.SetCompileMode(before); require.NoError(t, err) })
}

// A trainer computes the same bits as its parts.
func TestTrainerComputesTheSteps(t *testing.T) {
	withoutFusing(t)
	for _, d := range []mlxc.DType{mlxc.Float32, mlxc.BFloat16} {
		for _, limit := range []float64{0, 0.5} {
			optimizer := optim.AdamW[params]{LearningRate: optim.Constant(0.1), WeightDecay: 0.1}
			begin := func() params { p, _ := random(rand.New(rand.NewPCG(1, 2)), d); return p }
			trainer, err := optim.NewTrainer(begin(), optimizer, linearLoss)
			require.NoError(t, err)
			defer trainer.Close()
			trainer.MaxNorm = limit
			p := begin()
			state, err := optimizer.Init(p)
			require.NoError(t, err)
			for _, b := range batches(4) {
				// The new state outlives the caller's scope.
				var loss float64
				require.NoError(t, mlxc.WithScopeErr(func() (err error) { loss, err = trainer.Step(b); return err }))
				value, grads, err := tree.ValueAndGrad(func(p params) *mlxc.Array { return linearLoss(p, b) })(p)
				require.NoError(t, err)
				if limit != 0 {
					grads, _, err = optim.ClipByGlobalNorm(grads, limit)
					require.NoError(t, err)
				}
				p, state, err = optimizer.Update(p, grads, state)
				require.NoError(t, err)
				require.Equal(t, item(t, value), loss)
				require.Equal(t, elements(t, p), elements(t, trainer.State.Params))
			}
			require.Equal(t, elements(t, state), elements(t, trainer.State.Optimizer))
		}
	}
}

// Two processes, simulated by the gradients of the other half of the batch.
func TestTrainerAveragesLossAndGradients(t *testing.T) {
	withoutFusing(t)
	p, _ := random(rand.New(rand.NewPCG(1, 2)), mlxc.Float32)
	trainer, err := optim.NewTrainer(p, optim.SGD[params]{LearningRate: optim.Constant(1)}, linearLoss)
	require.NoError(t, err)
	defer trainer.Close()
	trainer.MaxNorm = 1e-3 // after the average
	trainer.Average = func(arrays []*mlxc.Array) []*mlxc.Array {
		require.Len(t, arrays, 3)
		require.Empty(t, arrays[0].Shape(), "the loss")
		means := make([]*mlxc.Array, len(arrays))
		for i, a := range arrays {
			means[i] = a.AddScalar(4)
		}
		return means
	}
	before := elements(t, trainer.State.Params)
	b := batches(1)[0]
	plain := item(t, linearLoss(trainer.State.Params, b))
	loss, err := trainer.Step(b)
	require.NoError(t, err)
	require.InDelta(t, plain+4, loss, 1e-5)
	norm := 0.0
	for i, v := range elements(t, trainer.State.Params) {
		norm += (v - before[i]) * (v - before[i])
	}
	require.InDelta(t, 1e-3, math.Sqrt(norm), 1e-6)
}

// After an error the state is the former one, and the next step continues from it.
func TestTrainerKeepsItsStateAfterAnError(t *testing.T) {
	withoutFusing(t)
	p, _ := random(rand.New(rand.NewPCG(1, 2)), mlxc.Float32)
	trainer, err := optim.NewTrainer(p, optim.AdamW[params]{LearningRate: optim.Constant(0.1)}, linearLoss)
	require.NoError(t, err)
	defer trainer.Close()
	b := batches(1)[0]
	_, err = trainer.Step(b)
	require.NoError(t, err)
	before := elements(t, trainer.State)
	for _, c := range []struct {
		target  float64
		message string
	}{{math.NaN(), "the loss is NaN"}, {math.Inf(1), "the loss is +Inf"}} {
		_, err = trainer.Step(batch{b.X, mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(c.target)), 3, 4)})
		require.ErrorContains(t, err, c.message)
	}
	_, err = trainer.Step(batch{b.X, mlxc.Ones(mlxc.Float32, 5)})
	require.ErrorContains(t, err, "broadcast")
	_, err = trainer.Step(batch{X: b.X})
	require.ErrorIs(t, err, mlxc.ErrNil)
	require.Equal(t, before, elements(t, trainer.State))
	_, err = trainer.Step(b)
	require.NoError(t, err)
	require.EqualValues(t, 2, item(t, trainer.State.Optimizer.Step))
}

func TestTrainerErrors(t *testing.T) {
	withoutFusing(t)
	p, _ := random(rand.New(rand.NewPCG(1, 2)), mlxc.Float32)
	_, err := optim.NewTrainer[params, optim.SGDState, batch](p, nil, linearLoss)
	require.ErrorContains(t, err, "optim.NewTrainer: the optimizer or the loss is nil")
	_, err = optim.NewTrainer[params, optim.SGDState, batch](p, optim.SGD[params]{}, nil)
	require.ErrorContains(t, err, "optim.NewTrainer: the optimizer or the loss is nil")
	_, err = optim.NewTrainer(p, optim.SGD[params]{Momentum: 2}, linearLoss)
	require.ErrorContains(t, err, "Momentum is 2")

	start := func() *optim.Trainer[params, optim.SGDState, batch] {
		p, _ := random(rand.New(rand.NewPCG(1, 2)), mlxc.Float32)
		trainer, err := optim.NewTrainer(p, optim.SGD[params]{LearningRate: optim.Constant(1)}, linearLoss)
		require.NoError(t, err)
		return trainer
	}
	b := batches(1)[0]
	trainer := start()
	trainer.MaxNorm = -1
	_, err = trainer.Step(b)
	require.ErrorContains(t, err, "the limit is -1: it must be positive")
	trainer = start()
	trainer.Average = func(a []*mlxc.Array) []*mlxc.Array { return a[:1] }
	_, err = trainer.Step(b)
	require.ErrorContains(t, err, "Average returned 1 arrays; it must return 3")
	trainer = start()
	lost := errors.New("the peer is lost")
	trainer.Average = func(a []*mlxc.Array) []*mlxc.Array {
		for i := range a {
			a[i] = mlxc.InvalidArray(lost)
		}
		return a
	}
	_, err = trainer.Step(b)
	require.ErrorIs(t, err, lost)
	trainer.Close()
	_, err = trainer.Step(b)
	require.ErrorContains(t, err, "closed")
}

// A long training uses the memory of one state.
func TestTrainerFreesFormerStates(t *testing.T) {
	withoutFusing(t)
	const bytes = 4 << 20
	trainer, err := optim.NewTrainer(mlxc.Zeros(mlxc.Float32, bytes/4), optim.SGD[*mlxc.Array]{LearningRate: optim.Constant(1)},
		func(p, x *mlxc.Array) *mlxc.Array { return p.Sub(x).Square().Mean() })
	require.NoError(t, err)
	defer trainer.Close()
	x := mlxc.Ones(mlxc.Float32)
	step := func() { _, err := trainer.Step(x); require.NoError(t, err) }
	step()
	before := mlxc.ActiveMemory()
	for range 20 {
		step()
	}
	require.LessOrEqual(t, mlxc.ActiveMemory(), before+bytes)
}
