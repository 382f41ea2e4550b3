package optim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/stretchr/testify/require"
)

func TestSGDAgainstFloat64(t *testing.T) {
	for _, o := range []optim.SGD[params]{
		{},
		{Momentum: 0.9},
		{Momentum: 0.9, Nesterov: true},
		{Momentum: 0.5, WeightDecay: 0.1},
		{
			Momentum: 0.5, Nesterov: true, WeightDecay: 0.1,
			ShouldDecay: func(name string) bool { return name == "bias" },
		},
	} {
		t.Run(fmt.Sprintf("momentum %v nesterov %v decay %v", o.Momentum, o.Nesterov, o.WeightDecay),
			func(t *testing.T) {
				r := rand.New(rand.NewPCG(3, 4))
				o.LearningRate = optim.Linear(0, 0.1, 5)
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
						if o.ShouldDecay == nil || i >= 8 {
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

// v = 1, then 0.5·1 + 2 = 2.5, with a rate of 0.1 and Nesterov momentum.
func TestSGDFirstUpdates(t *testing.T) {
	for _, c := range []struct {
		nesterov bool
		want     [2]float64
	}{
		{false, [2]float64{10 - 0.1, 10 - 0.1 - 0.25}},
		{true, [2]float64{10 - 0.15, 10 - 0.15 - 0.1*(2+1.25)}},
	} {
		o := optim.SGD[*mlxc.Array]{LearningRate: optim.Constant(0.1), Momentum: 0.5, Nesterov: c.nesterov}
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
