package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
)

// config holds the settings of a training.
type config struct {
	shape
	gradients
	batch, length int
	steps         int
	saveEvery     int     // steps between checkpoints
	rate          float64 // the largest learning rate
	seed          uint64
	group         *distributed.Group // nil in a training of one process
}

// passages holds the letters of a batch, and for each the next letter. Both are int32 of shape (batch, length).
type passages struct{ Inputs, Targets *mlxc.Array }

type (
	training = optim.Training[params, optim.AdamWState]
	trainer  = optim.Trainer[params, optim.AdamWState, passages]
)

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

func (c config) loss(p params, b passages) *mlxc.Array {
	return c.crossEntropy(c.logits(c.shape, p, b.Inputs), b.Targets)
}

// start returns the trainer of a new training.
func (c config) start() (*trainer, error) {
	t, err := optim.NewTrainer(newParams(c.shape, c.seed), c.optimizer(), c.loss)
	if err != nil {
		return nil, err
	}
	t.MaxNorm = 1
	if c.group != nil {
		t.Average = c.group.AverageGradients
	}
	return t, nil
}

// done returns the number of completed steps.
func done(t *trainer) (int, error) {
	n, err := mlxc.Item[int32](t.State.Optimizer.Step)
	return int(n), err
}

// train continues until c.steps steps are completed or ctx is canceled. report is called after each step with its
// loss, which is the loss of the whole batch in all processes.
func (c config) train(ctx context.Context, text corpus, t *trainer, report func(step int, loss float64) error) error {
	begin, err := done(t)
	if err != nil {
		return err
	}
	for i := begin; i < c.steps; i++ {
		if stop, err := c.anyRank(ctx.Err() != nil); stop || err != nil {
			return err
		}
		// Each step has its own generator, so a resumed training gets the same batches.
		rng := rand.New(rand.NewPCG(c.seed, uint64(i)))
		loss, err := t.Step(c.ownBatch(rng, text.train, c.batch))
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if err := report(i, loss); err != nil {
			return err
		}
	}
	return nil
}

// validate returns the mean loss of some passages of the validation text.
func (c config) validate(p params, text corpus) (float32, error) {
	var loss float32
	err := mlxc.WithScopeErr(func() (err error) {
		b := c.ownBatch(rand.New(rand.NewPCG(0, 0)), text.validation, 4*c.batch)
		loss, err = mlxc.Item[float32](c.loss(p, b))
		return err
	})
	if err != nil || c.group == nil {
		return loss, err
	}
	mean, err := c.group.WeightedMean(float64(loss), 1) // all shares are equal
	return float32(mean), err
}
