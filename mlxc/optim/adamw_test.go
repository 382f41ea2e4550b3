package optim_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/stretchr/testify/require"
)

// adamW computes the update of one element in float64.
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
		optimizer                optim.AdamW[params]
		beta1, beta2, eps, decay float64
	}{
		{optim.AdamW[params]{}, 0.9, 0.999, 1e-8, 0},
		{optim.AdamW[params]{Beta1: 0.8, Beta2: 0.95, Eps: 1e-3, WeightDecay: 0.1}, 0.8, 0.95, 1e-3, 0.1},
		{
			optim.AdamW[params]{WeightDecay: 0.1, ShouldDecay: func(name string) bool { return name == "weight" }},
			0.9,
			0.999, 1e-8, 0.1,
		},
	} {
		for d, tolerance := range map[mlxc.DType]float64{mlxc.Float32: 2e-6, mlxc.Float64: 2e-6} {
			r := rand.New(rand.NewPCG(1, 2))
			onCPU(t, func() {
				p, want := random(r, d)
				o := c.optimizer
				rate := func(step int) float64 { return 0.1 * math.Pow(0.5, float64(step)/10) }
				o.LearningRate = optim.ExponentialDecay(0.1, math.Pow(0.5, 0.1))
				state, err := o.Init(p)
				require.NoError(t, err)
				oracle := make([]adamW, size)
				for step := range 30 {
					grads, g := random(r, d)
					p, state, err = o.Update(p, grads, state)
					require.NoError(t, err)
					for i := range want {
						decay := c.decay
						if o.ShouldDecay != nil && i >= 8 {
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
	o := optim.AdamW[*mlxc.Array]{LearningRate: optim.Constant(0.1), WeightDecay: 0.01}
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
