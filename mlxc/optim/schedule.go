package optim

import (
	"errors"
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A Schedule gives the learning rate of an update, an array of shape (), from the number
// of updates before it, an int32 of shape (). It is a function of arrays, so that it can
// be part of a compiled function. The schedules of this package give float32.
//
// A rate that changes from outside is an array too. Under Compile it must be part of the
// function's input:
//
//	optim.AdamW[Params]{LearningRate: func(*mlxc.Array) *mlxc.Array { return in.Rate }}
type Schedule func(step *mlxc.Array) *mlxc.Array

// Constant is always the same rate.
func Constant(rate float64) Schedule {
	return func(*mlxc.Array) *mlxc.Array { return mlxc.Scalar(float32(rate)) }
}

// Linear goes from one rate to another in equal steps, and stays there: the rate is from
// for the first update, and to after steps updates, which must be positive. From 0, it
// is a warm-up.
func Linear(from, to float64, steps int) Schedule {
	return within("Linear", steps, func(done *mlxc.Array) *mlxc.Array {
		return done.MulScalar(to - from).AddScalar(from)
	})
}

// CosineDecay goes from one rate to another along half a cosine, and stays there:
// to + (from−to)·(1+cos(π·t/steps))/2 after t of steps updates (Loshchilov and Hutter,
// "SGDR", 2017, equation 5, without restarts). steps must be positive.
func CosineDecay(from, to float64, steps int) Schedule {
	return within("CosineDecay", steps, func(done *mlxc.Array) *mlxc.Array {
		return done.MulScalar(math.Pi).Cos().AddScalar(1).MulScalar((from - to) / 2).AddScalar(to)
	})
}

// ExponentialDecay is rate·factorᵗ after t updates. factor must be positive.
func ExponentialDecay(rate, factor float64) Schedule {
	return decay("ExponentialDecay", rate, factor, 1)
}

// StepDecay is rate·factor^⌊t/every⌋ after t updates: constant for every updates, then
// multiplied by factor. factor and every must be positive.
func StepDecay(rate, factor float64, every int) Schedule {
	return decay("StepDecay", rate, factor, every)
}

// Then follows s for the given number of updates and next from there on, which counts
// from its own beginning: the update after that many is next's first.
func (s Schedule) Then(steps int, next Schedule) Schedule {
	return func(step *mlxc.Array) *mlxc.Array {
		if s == nil || next == nil {
			return mlxc.InvalidArray(mlxc.NewError("optim.Then", errors.New("a schedule is nil")))
		}
		if steps <= 0 {
			return mlxc.InvalidArray(mlxc.NewError("optim.Then", fmt.Errorf("the first schedule has %d steps: there must be one at least", steps)))
		}
		limit := mlxc.Scalar(int32(steps))
		return mlxc.Where(step.Less(limit), s(step), next(step.Sub(limit)))
	}
}

// within makes a schedule of a function of the share of its steps that is done, from 0
// to 1.
func within(op string, steps int, f func(done *mlxc.Array) *mlxc.Array) Schedule {
	return func(step *mlxc.Array) *mlxc.Array {
		if steps <= 0 {
			return mlxc.InvalidArray(mlxc.NewError("optim."+op, fmt.Errorf("it has %d steps: there must be one at least", steps)))
		}
		return f(step.AsType(mlxc.Float32).DivScalar(float64(steps)).Clip(0, 1))
	}
}

func decay(op string, rate, factor float64, every int) Schedule {
	return func(step *mlxc.Array) *mlxc.Array {
		if !(factor > 0) || every <= 0 {
			err := fmt.Errorf("the factor is %v and holds for %d updates: both must be positive", factor, every)
			return mlxc.InvalidArray(mlxc.NewError("optim."+op, err))
		}
		times := step.FloorDivide(mlxc.Scalar(int32(every))).AsType(mlxc.Float32)
		return times.MulScalar(math.Log(factor)).Exp().MulScalar(rate)
	}
}
