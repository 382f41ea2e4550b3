package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// config holds the settings of a training.
type config struct {
	shape
	gradients
	batch, length int
	steps         int
	rate          float64 // the largest learning rate
	seed          uint64
}

// training is the state that a step updates.
type training struct {
	Params    params
	Optimizer optim.AdamWState
}

// done returns the number of completed steps.
func (t training) done() (int, error) {
	n, err := mlxc.Item[int32](t.Optimizer.Step)
	return int(n), err
}

type stepInput struct {
	training
	Inputs, Targets *mlxc.Array
}

type stepOutput struct {
	training
	Loss *mlxc.Array
}

func (c config) optimizer() optim.AdamW[params] {
	warmUp := max(c.steps/20, 1)
	decay := optim.CosineDecay(c.rate, c.rate/10, max(c.steps-warmUp, 1))
	return optim.AdamW[params]{
		LearningRate: optim.Linear(0, c.rate, warmUp).Then(warmUp, decay),
		Beta2:        0.99,
		WeightDecay:  0.1,
		ShouldDecay:  func(name string) bool { return !strings.HasSuffix(name, "norm") },
	}
}

func (c config) step(in stepInput) (stepOutput, error) {
	value, grads, err := tree.ValueAndGrad(func(p params) *mlxc.Array {
		return c.crossEntropy(c.logits(c.shape, p, in.Inputs), in.Targets)
	})(in.Params)
	if err != nil {
		return stepOutput{}, err
	}
	grads, _, err = optim.ClipByGlobalNorm(grads, 1)
	if err != nil {
		return stepOutput{}, err
	}
	out := stepOutput{Loss: value}
	out.Params, out.Optimizer, err = c.optimizer().Update(in.Params, grads, in.Optimizer)
	return out, err
}

// start returns a new training.
func (c config) start() (t training, err error) {
	t.Params = newParams(c.shape, c.seed)
	t.Optimizer, err = c.optimizer().Init(t.Params)
	return t, err
}

// train continues t until c.steps steps are completed or ctx is cancelled, and returns the new state and the loss of
// each step. It frees t. step is c.step or its compiled form. report is called after each step.
func (c config) train(
	ctx context.Context,
	text corpus,
	t training,
	step func(stepInput) (stepOutput, error),
	report func(step int, loss float64),
) (training, []float64, error) {
	begin, err := t.done()
	if err != nil {
		return training{}, nil, err
	}
	var losses []float64
	for i := begin; i < c.steps && ctx.Err() == nil; i++ {
		var loss float32
		err := mlxc.WithScopeErr(func() error {
			in := stepInput{training: t}
			// Each step has its own generator, so a resumed training gets the same batches.
			rng := rand.New(rand.NewPCG(c.seed, uint64(i)))
			in.Inputs, in.Targets = batch(rng, text.train, c.batch, c.length)
			out, err := step(in)
			if err != nil {
				return err
			}
			// A single evaluation computes all arrays.
			if err := tree.Eval(out); err != nil {
				return err
			}
			if loss, err = mlxc.Item[float32](out.Loss); err != nil {
				return err
			}
			if math.IsNaN(float64(loss)) {
				return fmt.Errorf("the loss of step %d is NaN: use a lower learning rate", i+1)
			}
			if err := tree.Keep(out.training); err != nil {
				return err
			}
			err = tree.Free(t)
			t = out.training
			return err
		})
		if err != nil {
			return training{}, losses, err
		}
		losses = append(losses, float64(loss))
		report(i, float64(loss))
	}
	return t, losses, nil
}

// validate returns the mean loss of some passages of the validation text.
func (c config) validate(p params, text corpus) (float32, error) {
	var loss float32
	err := mlxc.WithScopeErr(func() (err error) {
		inputs, targets := batch(rand.New(rand.NewPCG(0, 0)), text.validation, 4*c.batch, c.length)
		loss, err = mlxc.Item[float32](c.crossEntropy(c.logits(c.shape, p, inputs), targets))
		return err
	})
	return loss, err
}
