package main

import (
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
)

// config holds the settings of a training.
type config struct {
	batch int // points per step, of all processes together
	steps int
}

// params holds a network with one hidden layer.
type params struct {
	Hidden, HiddenBias *mlxc.Array // (1, width), (width)
	Out, OutBias       *mlxc.Array // (width, 1), (1)
}

type points struct{ X, Y *mlxc.Array } // (n, 1)

func newParams() params {
	const width = 64
	return params{
		Hidden:     mlxc.RandomNormal(mlxc.RandomKey(1), mlxc.Float32, 1, width).MulScalar(3),
		HiddenBias: mlxc.RandomNormal(mlxc.RandomKey(2), mlxc.Float32, width),
		Out:        mlxc.RandomNormal(mlxc.RandomKey(3), mlxc.Float32, width, 1).DivScalar(math.Sqrt(width)),
		OutBias:    mlxc.Zeros(mlxc.Float32, 1),
	}
}

func loss(p params, at points) *mlxc.Array {
	hidden := at.X.MatMul(p.Hidden).Add(p.HiddenBias).Tanh()
	return hidden.MatMul(p.Out).Add(p.OutBias).Sub(at.Y).Square().Mean()
}

// share returns this process's part of the batch of a step: points of the curve y = sin 3x. Every process draws the
// whole batch from the same key, so the union does not depend on the number of processes.
func (c config) share(g *distributed.Group, step int) points {
	x := mlxc.RandomUniform(mlxc.RandomKey(uint64(step)), -1, 1, mlxc.Float32, c.batch, 1)
	x = x.Split(g.Size(), 0)[g.Rank()]
	return points{x, x.MulScalar(3).Sin()}
}

// train trains from the start and returns the parameters. report is called after each step with the loss of the whole
// batch.
func (c config) train(g *distributed.Group, report func(step int, loss float64)) (params, error) {
	trainer, err := optim.NewTrainer(newParams(),
		optim.AdamW[params]{LearningRate: optim.CosineDecay(0.01, 0.0001, c.steps)}, loss)
	if err != nil {
		return params{}, err
	}
	defer trainer.Close()
	trainer.Average = g.AverageGradients
	for i := range c.steps {
		loss, err := trainer.Step(c.share(g, i))
		if err != nil {
			return params{}, err
		}
		report(i, loss)
	}
	return trainer.State.Params, nil
}
