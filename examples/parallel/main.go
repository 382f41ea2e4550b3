// Command parallel trains one model in several processes, which mlxgrad launch starts. Each computes the gradient of its
// share of the batch, and MLX averages the gradients. README.md describes its use.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
)

func main() {
	if err := errors.Join(run(os.Args[1:], os.Stdout), mlxc.Shutdown()); err != nil {
		fmt.Fprintln(os.Stderr, "parallel:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("parallel", flag.ContinueOnError)
	c := config{batch: 64}
	flags.IntVar(&c.steps, "steps", 500, "`number` of training steps")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	group, err := distributed.Init(distributed.Any, false)
	if err != nil {
		return err
	}
	if c.batch%group.Size() != 0 {
		return fmt.Errorf("there are %d processes; the number must divide %d, the points of a batch", group.Size(), c.batch)
	}
	_, err = c.train(group, func(step int, loss float64) {
		if group.Rank() == 0 && (step+1)%100 == 0 { // all processes have the same loss
			fmt.Fprintf(out, "step %d: loss %.5f\n", step+1, loss)
		}
	})
	if err == nil {
		fmt.Fprintf(out, "process %d of %d is done\n", group.Rank(), group.Size())
	}
	return err
}
