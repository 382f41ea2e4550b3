// Command mlp trains a multi-layer perceptron to separate the points of two spirals, which a linear function cannot.
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

type layer struct {
	Weight *mlxc.Array // (in, out)
	Bias   *mlxc.Array // (out)
}

type params struct{ Layers []layer }

// data holds points and their classes.
type data struct {
	Points *mlxc.Array // (n, 2)
	Arms   *mlxc.Array // (n), 0 or 1
}

func main() {
	if err := errors.Join(run(os.Stderr, os.Stdout), mlxc.Shutdown()); err != nil {
		fmt.Fprintln(os.Stderr, "mlp:", err)
		os.Exit(1)
	}
}

// spirals returns 2n points on two arms.
func spirals(n int) data {
	var p []float32
	var a []int32
	for i := range n {
		r := float64(i+1) / float64(n)
		for arm := range 2 {
			sin, cos := math.Sincos(2*math.Pi*r + math.Pi*float64(arm))
			p, a = append(p, float32(r*cos), float32(r*sin)), append(a, int32(arm))
		}
	}
	return data{mlxc.FromSlice(p, 2*n, 2), mlxc.FromSlice(a)}
}

func newParams(widths ...int) params {
	var p params
	for i, out := range widths[1:] {
		in := widths[i]
		weight := mlxc.RandomNormal(mlxc.RandomKey(uint64(i)), mlxc.Float32, in, out)
		p.Layers = append(p.Layers, layer{weight.DivScalar(math.Sqrt(float64(in))), mlxc.Zeros(mlxc.Float32, out)})
	}
	return p
}

func (p params) logits(x *mlxc.Array) *mlxc.Array {
	for i, l := range p.Layers {
		if i > 0 {
			x = x.Tanh()
		}
		x = x.MatMul(l.Weight).Add(l.Bias)
	}
	return x
}

func run(progress, out io.Writer) error {
	const steps = 400
	train := spirals(100)
	trainer, err := optim.NewTrainer(newParams(2, 32, 32, 2),
		optim.AdamW[params]{LearningRate: optim.CosineDecay(0.02, 0, steps), WeightDecay: 0.01},
		func(p params, d data) *mlxc.Array {
			return ops.CrossEntropy(p.logits(d.Points), d.Arms, ops.CrossEntropyConfig{})
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
		if (i+1)%100 == 0 {
			fmt.Fprintf(progress, "step %d: loss %.3f\n", i+1, loss)
		}
	}
	correct := trainer.State.Params.logits(train.Points).ArgMax(1).Equal(train.Arms)
	accuracy, err := mlxc.Item[float32](correct.AsType(mlxc.Float32).Mean())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "accuracy %.1f %%\n", 100*accuracy)
	return nil
}
