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

// config says how to train.
type config struct {
	shape
	gradients
	batch, length int
	steps         int
	rate          float64 // the largest learning rate
	seed          uint64
}

// training is what goes from one step to the next.
type training struct {
	Params    params
	Optimiser optim.AdamWState
}

// done is the number of steps that led here.
func (t training) done() (int, error) {
	n, err := mlxc.Item[int32](t.Optimiser.Step)
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

func (c config) optimiser() optim.AdamW[params] {
	warmUp := max(c.steps/20, 1)
	return optim.AdamW[params]{
		LearningRate: optim.Linear(0, c.rate, warmUp).Then(warmUp, optim.CosineDecay(c.rate, c.rate/10, max(c.steps-warmUp, 1))),
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
	out.Params, out.Optimiser, err = c.optimiser().Update(in.Params, grads, in.Optimiser)
	return out, err
}

// start is the beginning of a training.
func (c config) start() (t training, err error) {
	t.Params = newParams(c.shape, c.seed)
	t.Optimiser, err = c.optimiser().Init(t.Params)
	return t, err
}

// train goes on from t, which it frees, and returns what it has come to: after c.steps in
// all, or after the one during which ctx was cancelled. step is c.step, or a compiled form
// of it; report sees each loss.
func (c config) train(ctx context.Context, text corpus, t training, step func(stepInput) (stepOutput, error), report func(step int, loss float64)) (training, []float64, error) {
	begin, err := t.done()
	if err != nil {
		return training{}, nil, err
	}
	var losses []float64
	for i := begin; i < c.steps && ctx.Err() == nil; i++ {
		var loss float32
		err := mlxc.WithScopeErr(func() error {
			in := stepInput{training: t}
			// A generator for each step, so that a training that was interrupted goes on
			// with the batches that it would have had.
			in.Inputs, in.Targets = batch(rand.New(rand.NewPCG(c.seed, uint64(i))), text.train, c.batch, c.length)
			out, err := step(in)
			if err != nil {
				return err
			}
			// One evaluation for all that is needed.
			if err := tree.Eval(out); err != nil {
				return err
			}
			if loss, err = mlxc.Item[float32](out.Loss); err != nil {
				return err
			}
			if math.IsNaN(float64(loss)) {
				return fmt.Errorf("the loss of step %d is not a number: a lower rate may help", i+1)
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

// validate is the mean loss on the text that was held back, of some passages.
func (c config) validate(p params, text corpus) (float32, error) {
	var loss float32
	err := mlxc.WithScopeErr(func() (err error) {
		inputs, targets := batch(rand.New(rand.NewPCG(0, 0)), text.held, 4*c.batch, c.length)
		loss, err = mlxc.Item[float32](c.crossEntropy(c.logits(c.shape, p, inputs), targets))
		return err
	})
	return loss, err
}
