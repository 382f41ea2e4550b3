// Train is a small GoMLX program: it trains a network to classify synthetic points. The environment variable
// GOMLX_BACKEND selects the backend, mlx or go:
//
//	GOMLX_BACKEND=mlx go run ./examples/train
package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/layers/activations"
	"github.com/gomlx/gomlx/pkg/ml/layers/fnn"
	"github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"

	_ "github.com/mlxgrad/mlxgrad/gomlx"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func main() {
	if err := errors.Join(run(200), mlxc.Shutdown()); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

// run trains for a number of steps and prints the loss.
func run(steps int) error {
	backend, err := backends.New()
	if err != nil {
		return err
	}
	defer backend.Finalize()
	fmt.Println(backend.Description())
	t := newTraining(backend)
	for i := range steps {
		loss, err := t.step()
		if err != nil {
			return err
		}
		if i%20 == 0 || i == steps-1 {
			fmt.Printf("step %3d: loss %.4f\n", i, loss)
		}
	}
	return nil
}

// The size of the problem: points in a cube, labeled by the nearest of some random centers.
const (
	batch, features, classes = 128, 32, 10
	hiddenLayers, hidden     = 2, 256
)

type training struct {
	trainer *train.Trainer
	random  *rand.Rand
	centers [classes][features]float32
}

func newTraining(backend backends.Backend) *training {
	t := &training{random: rand.New(rand.NewPCG(1, 2))}
	for i := range t.centers {
		t.point(t.centers[i][:])
	}
	ctx := context.New()
	_ = ctx.SetRNGStateFromSeed(3)
	t.trainer = train.NewTrainer(backend, ctx, model, losses.SparseCategoricalCrossEntropyLogits,
		optimizers.Adam().LearningRate(1e-3).Done(), nil, nil)
	return t
}

func model(ctx *context.Context, _ any, inputs []*graph.Node) []*graph.Node {
	return []*graph.Node{fnn.New(ctx.In("model"), inputs[0], classes).
		NumHiddenLayers(hiddenLayers, hidden).Activation(activations.TypeGelu).Normalization("layer").Residual(true).Done()}
}

// point fills x with random coordinates.
func (t *training) point(x []float32) {
	for i := range x {
		x[i] = 2*t.random.Float32() - 1
	}
}

// step trains on a new batch and returns its loss.
func (t *training) step() (float32, error) {
	points, labels := make([]float32, batch*features), make([]int32, batch)
	for i := range labels {
		x := points[i*features : (i+1)*features]
		t.point(x)
		labels[i] = t.label(x)
	}
	metrics, err := t.trainer.TrainStep(nil,
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(points, batch, features)},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(labels, batch, 1)})
	if err != nil {
		return 0, err
	}
	return metrics[0].Value().(float32), nil
}

// label returns the number of the nearest center.
func (t *training) label(x []float32) int32 {
	nearest, least := 0, float32(0)
	for c, center := range t.centers {
		var d float32
		for i, v := range center {
			d += (v - x[i]) * (v - x[i])
		}
		if c == 0 || d < least {
			nearest, least = c, d
		}
	}
	return int32(nearest)
}
