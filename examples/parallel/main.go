// Command parallel trains one model in several processes. Each computes the gradient of its share of the batch, and
// MLX's ring of TCP connections averages the gradients. README.md describes its use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := errors.Join(run(ctx, os.Args[1:], os.Stdout), mlxc.Shutdown()); err != nil {
		fmt.Fprintln(os.Stderr, "parallel:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("parallel", flag.ContinueOnError)
	processes := flags.Int("processes", 2, "`number` of processes to start on this machine")
	c := config{batch: 64}
	flags.IntVar(&c.steps, "steps", 500, "`number` of training steps")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if *processes < 1 || c.batch%*processes != 0 {
		return fmt.Errorf("-processes is %d; it must divide %d, the points of a batch", *processes, c.batch)
	}
	if *processes > 1 && os.Getenv("MLX_RANK") == "" { // the variables of a ring: see distributed.Init
		return launch(ctx, *processes, args, out)
	}
	// The processes of a machine must not compile the same fused functions at the same time: see mlxc.Compile.
	if _, err := mlxc.SetCompileMode(mlxc.CompileNoFuse); err != nil {
		return err
	}
	group, err := distributed.Init(distributed.Ring, *processes > 1)
	if err != nil {
		return err
	}
	if group.Size() != *processes {
		return fmt.Errorf("-processes is %d; the ring has %d", *processes, group.Size())
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
