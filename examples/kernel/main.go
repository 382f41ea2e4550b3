// Command kernel trains a network with a custom operation: a Metal kernel and its gradient, in normalize.metal.
// README.md shows how they are checked.
package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/mlxgrad/mlxgrad/ops"
)

func main() {
	if err := errors.Join(run(os.Stderr, os.Stdout), mlxc.Shutdown()); err != nil {
		fmt.Fprintln(os.Stderr, "kernel:", err)
		os.Exit(1)
	}
}

// params holds a network that compares the direction of its last hidden layer with a direction for each class.
type params struct {
	Hidden, Bias *mlxc.Array // (2, width), (width)
	Direction    *mlxc.Array // (width, features)
	Classes      *mlxc.Array // (classes, features)
}

type data struct {
	Points  *mlxc.Array // (n, 2)
	Classes *mlxc.Array // (n), int32
}

const classes = 3

// rings returns n points on each of three circles.
func rings(n int) data {
	var points []float32
	var class []int32
	for i := range classes * n {
		c := i % classes
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		radius := 0.3 * float64(c+1)
		points, class = append(points, float32(radius*cos), float32(radius*sin)), append(class, int32(c))
	}
	return data{mlxc.FromSlice(points, classes*n, 2), mlxc.FromSlice(class)}
}

func newParams(width, features int) params {
	normal := func(seed uint64, shape ...int) *mlxc.Array {
		return mlxc.RandomNormal(mlxc.RandomKey(seed), mlxc.Float32, shape...)
	}
	return params{
		Hidden:    normal(1, 2, width).MulScalar(3),
		Bias:      normal(2, width),
		Direction: normal(3, width, features).DivScalar(math.Sqrt(float64(width))),
		Classes:   normal(4, classes, features),
	}
}

func run(progress, out io.Writer) error {
	const steps = 200
	normalize, err := loadNormalize()
	if err != nil {
		return err
	}
	// The logits are cosines of the angles between features and classes, times 10.
	logits := func(p params, points *mlxc.Array) *mlxc.Array {
		features := points.MatMul(p.Hidden).Add(p.Bias).Tanh().MatMul(p.Direction)
		return normalize(features).MatMul(normalize(p.Classes).Transpose()).MulScalar(10)
	}
	train := rings(100)
	trainer, err := optim.NewTrainer(newParams(32, 8), optim.AdamW[params]{LearningRate: optim.CosineDecay(0.03, 0, steps)},
		func(p params, d data) *mlxc.Array {
			return ops.CrossEntropy(logits(p, d.Points), d.Classes, ops.CrossEntropyConfig{})
		})
	if err != nil {
		return err
	}
	defer trainer.Close()
	for i := range steps {
		loss, err := trainer.Step(train)
		if err != nil {
			return err
		}
		if (i+1)%50 == 0 {
			fmt.Fprintf(progress, "step %d: loss %.3f\n", i+1, loss)
		}
	}
	correct := logits(trainer.State.Params, train.Points).ArgMax(1).Equal(train.Classes)
	accuracy, err := mlxc.Item[float32](correct.AsType(mlxc.Float32).Mean())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "accuracy %.1f %%\n", 100*accuracy)
	return nil
}
