// Command linear fits a linear function of three variables to noisy points. It is a minimal training loop with
// gradients, AdamW and compilation.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

type params struct {
	Weight *mlxc.Array // (3)
	Bias   *mlxc.Array // ()
}

// training is the input and the output of a step.
type training struct {
	Params params
	State  optim.AdamWState
	Loss   *mlxc.Array
}

func main() {
	if err := errors.Join(run(os.Stderr, os.Stdout), mlxc.Shutdown()); err != nil {
		fmt.Fprintln(os.Stderr, "linear:", err)
		os.Exit(1)
	}
}

func run(progress, out io.Writer) error {
	const points, steps = 256, 300
	// y = x·(2, −3, 0.5) + 4 + noise with a standard deviation of 0.01.
	x := mlxc.RandomNormal(mlxc.RandomKey(1), mlxc.Float32, points, 3)
	noise := mlxc.RandomNormal(mlxc.RandomKey(2), mlxc.Float32, points).MulScalar(0.01)
	y := x.MatMul(mlxc.FromSlice([]float32{2, -3, 0.5})).AddScalar(4).Add(noise)

	loss := func(p params) *mlxc.Array {
		return x.MatMul(p.Weight).Add(p.Bias).Sub(y).Square().Mean()
	}
	optimizer := optim.AdamW[params]{LearningRate: optim.CosineDecay(0.1, 0, steps)}
	step := tree.Compile(func(t training) (training, error) {
		value, grads, err := tree.ValueAndGrad(loss)(t.Params)
		if err != nil {
			return t, err
		}
		t.Loss = value
		t.Params, t.State, err = optimizer.Update(t.Params, grads, t.State)
		return t, err
	})
	defer step.Close()

	t := training{
		Params: params{mlxc.Zeros(mlxc.Float32, 3), mlxc.Zeros(mlxc.Float32)},
		Loss:   mlxc.Zeros(mlxc.Float32),
	}
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
		t = next
		if (i+1)%100 == 0 {
			value, err := mlxc.Item[float32](t.Loss)
			if err != nil {
				return err
			}
			fmt.Fprintf(progress, "step %d: loss %.4f\n", i+1, value)
		}
	}
	weight, err := mlxc.ToSlice[float32](t.Params.Weight)
	if err != nil {
		return err
	}
	bias, err := mlxc.Item[float32](t.Params.Bias)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "weight %.2f, bias %.2f\n", weight, bias)
	return nil
}
