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
)

type params struct {
	Weight *mlxc.Array // (3)
	Bias   *mlxc.Array // ()
}

type points struct {
	X *mlxc.Array // (n, 3)
	Y *mlxc.Array // (n)
}

func main() {
	if err := errors.Join(run(os.Stderr, os.Stdout), mlxc.Shutdown()); err != nil {
		fmt.Fprintln(os.Stderr, "linear:", err)
		os.Exit(1)
	}
}

func run(progress, out io.Writer) error {
	const n, steps = 256, 300
	// y = x·(2, −3, 0.5) + 4 + noise with a standard deviation of 0.01.
	x := mlxc.RandomNormal(mlxc.RandomKey(1), mlxc.Float32, n, 3)
	noise := mlxc.RandomNormal(mlxc.RandomKey(2), mlxc.Float32, n).MulScalar(0.01)
	y := x.MatMul(mlxc.FromSlice([]float32{2, -3, 0.5})).AddScalar(4).Add(noise)

	trainer, err := optim.NewTrainer(params{mlxc.Zeros(mlxc.Float32, 3), mlxc.Zeros(mlxc.Float32)},
		optim.AdamW[params]{LearningRate: optim.CosineDecay(0.1, 0, steps)},
		func(p params, at points) *mlxc.Array {
			return at.X.MatMul(p.Weight).Add(p.Bias).Sub(at.Y).Square().Mean()
		})
	if err != nil {
		return err
	}
	defer trainer.Close()
	for i := range steps {
		loss, err := trainer.Step(points{x, y})
		if err != nil {
			return err
		}
		if (i+1)%100 == 0 {
			fmt.Fprintf(progress, "step %d: loss %.4f\n", i+1, loss)
		}
	}
	weight, err := mlxc.ToSlice[float32](trainer.State.Params.Weight)
	if err != nil {
		return err
	}
	bias, err := mlxc.Item[float32](trainer.State.Params.Bias)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "weight %.2f, bias %.2f\n", weight, bias)
	return nil
}
