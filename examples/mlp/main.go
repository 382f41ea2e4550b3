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
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
	"github.com/mlxgrad/mlxgrad/ops"
)

type layer struct {
	Weight *mlxc.Array // (in, out)
	Bias   *mlxc.Array // (out)
}

type params struct{ Layers []layer }

// training is the state that a step updates.
type training struct {
	Params params
	State  optim.AdamWState
}

type stepOutput struct {
	training
	Loss *mlxc.Array
}

func main() {
	if err := errors.Join(run(os.Stderr, os.Stdout), mlxc.Shutdown()); err != nil {
		fmt.Fprintln(os.Stderr, "mlp:", err)
		os.Exit(1)
	}
}

// spirals returns points on two arms, of shape (2n, 2), and the arm of each point, 0 or 1, of shape (2n).
func spirals(n int) (points, arms *mlxc.Array) {
	var p []float32
	var a []int32
	for i := range n {
		r := float64(i+1) / float64(n)
		for arm := range 2 {
			sin, cos := math.Sincos(2*math.Pi*r + math.Pi*float64(arm))
			p, a = append(p, float32(r*cos), float32(r*sin)), append(a, int32(arm))
		}
	}
	return mlxc.FromSlice(p, 2*n, 2), mlxc.FromSlice(a)
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
	points, arms := spirals(100)
	optimizer := optim.AdamW[params]{LearningRate: optim.CosineDecay(0.02, 0, steps), WeightDecay: 0.01}
	step := tree.Compile(func(t training) (stepOutput, error) {
		value, grads, err := tree.ValueAndGrad(func(p params) *mlxc.Array {
			return ops.CrossEntropy(p.logits(points), arms, ops.CrossEntropyConfig{})
		})(t.Params)
		if err != nil {
			return stepOutput{}, err
		}
		next := stepOutput{Loss: value}
		next.Params, next.State, err = optimizer.Update(t.Params, grads, t.State)
		return next, err
	})
	defer step.Close()

	t := training{Params: newParams(2, 32, 32, 2)}
	var err error
	if t.State, err = optimizer.Init(t.Params); err != nil {
		return err
	}
	for i := range steps {
		next, err := step.Call(t)
		if err == nil {
			err = tree.Eval(next)
		}
		if err == nil {
			err = tree.Free(t)
		}
		if err != nil {
			return err
		}
		if (i+1)%100 == 0 {
			loss, err := mlxc.Item[float32](next.Loss)
			if err != nil {
				return err
			}
			fmt.Fprintf(progress, "step %d: loss %.3f\n", i+1, loss)
		}
		next.Loss.Free()
		t = next.training
	}
	correct := t.Params.logits(points).ArgMax(1).Equal(arms).AsType(mlxc.Float32).Mean()
	accuracy, err := mlxc.Item[float32](correct)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "accuracy %.1f %%\n", 100*accuracy)
	return nil
}
