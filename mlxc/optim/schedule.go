package optim

import (
	"errors"
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Schedule maps the number of updates so far, an int32 array of shape (), to the learning rate of the next update, an
// array of shape (). It works on arrays so that it can be part of a compiled function. The schedules of this package
// return float32. If a setting is not allowed, they return an invalid array, and Update returns its error.
//
// A rate that changes at run time is an array, too. Under Compile it must be part of the function's input:
//
//	optim.AdamW[Params]{LearningRate: func(*mlxc.Array) *mlxc.Array { return in.Rate }}
type Schedule func(step *mlxc.Array) *mlxc.Array

// Constant returns a constant rate.
func Constant(rate float64) Schedule {
	return func(*mlxc.Array) *mlxc.Array { return mlxc.Scalar(float32(rate)) }
}

// Linear changes the rate in equal steps from `from` at the first update to `to` after the given number of updates, and
// then keeps it. steps must be positive. With `from` 0, it is a warm-up.
func Linear(from, to float64, steps int) Schedule {
	return within("Linear", steps, func(done *mlxc.Array) *mlxc.Array {
		return done.MulScalar(to - from).AddScalar(from)
	})
}

// CosineDecay changes the rate along half a cosine and then keeps it: to + (from−to)·(1+cos(π·t/steps))/2 after t of
// steps updates (Loshchilov and Hutter, "SGDR", 2017, equation 5, without restarts). steps must be positive.
func CosineDecay(from, to float64, steps int) Schedule {
	return within("CosineDecay", steps, func(done *mlxc.Array) *mlxc.Array {
		return done.MulScalar(math.Pi).Cos().AddScalar(1).MulScalar((from - to) / 2).AddScalar(to)
	})
}

// ExponentialDecay returns rate·factorᵗ after t updates. factor must be positive.
func ExponentialDecay(rate, factor float64) Schedule {
	return decay("ExponentialDecay", rate, factor, 1)
}

// StepDecay returns rate·factor^⌊t/every⌋ after t updates. factor and every must be positive.
func StepDecay(rate, factor float64, every int) Schedule {
	return decay("StepDecay", rate, factor, every)
}

// Then returns a schedule that follows s for the first `steps` updates, and then next, with updates counted from 0
// again. steps must be positive.
func (s Schedule) Then(steps int, next Schedule) Schedule {
	return func(step *mlxc.Array) *mlxc.Array {
		if s == nil || next == nil {
			return mlxc.InvalidArray(mlxc.NewError("optim.Then", errors.New("a schedule is nil")))
		}
		if steps <= 0 {
			return mlxc.InvalidArray(mlxc.NewError("optim.Then", fmt.Errorf("steps is %d: it must be positive", steps)))
		}
		limit := stepScalar(steps)
		return mlxc.Where(step.Less(limit), s(step), next(step.Sub(limit)))
	}
}

// within returns a schedule that calls f with the completed fraction of the steps, from 0 to 1.
func within(op string, steps int, f func(done *mlxc.Array) *mlxc.Array) Schedule {
	return func(step *mlxc.Array) *mlxc.Array {
		if steps <= 0 {
			return mlxc.InvalidArray(mlxc.NewError("optim."+op, fmt.Errorf("steps is %d: it must be positive", steps)))
		}
		return f(step.AsType(mlxc.Float32).DivScalar(float64(steps)).Clip(0, 1))
	}
}

// stepScalar returns n in the dtype of steps. A step is at most the greatest int32, so a greater n is never reached.
func stepScalar(n int) *mlxc.Array { return mlxc.Scalar(int32(min(n, math.MaxInt32))) }

func decay(op string, rate, factor float64, every int) Schedule {
	return func(step *mlxc.Array) *mlxc.Array {
		if !(factor > 0) || every <= 0 {
			err := fmt.Errorf("factor is %v and every is %d: both must be positive", factor, every)
			return mlxc.InvalidArray(mlxc.NewError("optim."+op, err))
		}
		times := step.FloorDivide(stepScalar(every)).AsType(mlxc.Float32)
		return times.MulScalar(math.Log(factor)).Exp().MulScalar(rate)
	}
}
