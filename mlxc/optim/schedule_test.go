package optim_test

import (
	"math"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
	"github.com/stretchr/testify/require"
)

func TestSchedules(t *testing.T) {
	for name, c := range map[string]struct {
		schedule optim.Schedule
		want     func(t float64) float64
	}{
		"constant": {optim.Constant(0.3), func(float64) float64 { return 0.3 }},
		"linear":   {optim.Linear(0.1, 0.5, 8), func(t float64) float64 { return 0.1 + 0.4*math.Min(t/8, 1) }},
		"cosine": {optim.CosineDecay(0.5, 0.1, 10), func(t float64) float64 {
			return 0.1 + 0.4*(1+math.Cos(math.Pi*math.Min(t, 10)/10))/2
		}},
		"exponential": {optim.ExponentialDecay(0.5, 0.9), func(t float64) float64 { return 0.5 * math.Pow(0.9, t) }},
		"step":        {optim.StepDecay(0.5, 0.1, 4), func(t float64) float64 { return 0.5 * math.Pow(0.1, math.Floor(t/4)) }},
		"joined": {
			optim.Linear(0, 1, 3).Then(3, optim.Constant(1)).Then(5, optim.ExponentialDecay(1, 0.5)),
			func(t float64) float64 {
				switch {
				case t < 3:
					return t / 3
				case t < 5:
					return 1
				}
				return math.Pow(0.5, t-5)
			},
		},
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

// Numbers of steps beyond int32 are never reached.
func TestSchedulesOfManySteps(t *testing.T) {
	for name, s := range map[string]optim.Schedule{
		"greatest": optim.Constant(1).Then(math.MaxInt, optim.Constant(2)),
		"wide":     optim.Constant(1).Then(1<<40, optim.Constant(2)),
		"step":     optim.StepDecay(1, 0.5, 1<<32+1),
	} {
		require.Equal(t, 1.0, item(t, s(mlxc.Scalar[int32](3))), name)
	}
}
