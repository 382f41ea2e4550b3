package main

import (
	"context"
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
	Optimiser optim.AdamWState[params]
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
		Rate:        optim.Linear(0, c.rate, warmUp).Then(warmUp, optim.Cosine(c.rate, c.rate/10, max(c.steps-warmUp, 1))),
		Beta2:       0.99,
		WeightDecay: 0.1,
		Decays:      func(name string) bool { return !strings.HasSuffix(name, "norm") },
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

// train returns the parameters after the last step, or after the one during which ctx
// was cancelled, and the losses. report sees each loss.
func (c config) train(ctx context.Context, text corpus, report func(step int, loss float32)) (params, []float64, error) {
	var t training
	t.Params = newParams(c.shape, c.seed)
	state, err := c.optimiser().Init(t.Params)
	if err != nil {
		return params{}, nil, err
	}
	t.Optimiser = state
	step := tree.Compile(c.step)
	defer step.Close()
	r := rand.New(rand.NewPCG(c.seed, 0))
	var losses []float64
	for i := range c.steps {
		if ctx.Err() != nil {
			break
		}
		in := stepInput{training: t}
		in.Inputs, in.Targets = batch(r, text.train, c.batch, c.length)
		out, err := step.Call(in)
		if err == nil {
			err = tree.Eval(out)
		}
		if err != nil {
			return params{}, losses, err
		}
		loss, err := mlxc.Item[float32](out.Loss)
		if err == nil {
			err = tree.Free(in) // not in wait for the collector
		}
		if err != nil {
			return params{}, losses, err
		}
		out.Loss.Free()
		t = out.training
		losses = append(losses, float64(loss))
		report(i, loss)
	}
	return t.Params, losses, nil
}

// validate is the mean loss on the text that was held back, of some passages.
func (c config) validate(p params, text corpus) (float32, error) {
	var loss float32
	var err error
	mlxc.WithScope(func() {
		inputs, targets := batch(rand.New(rand.NewPCG(0, 0)), text.held, 4*c.batch, c.length)
		loss, err = mlxc.Item[float32](c.crossEntropy(c.logits(c.shape, p, inputs), targets))
	})
	return loss, err
}
