// Command export writes a whole training step, with gradients, optimizer and kernels, to files that another machine runs
// without this code. README.md lists the requirements of a Mac.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func main() {
	if err := errors.Join(run(os.Args[1:], os.Stdout), mlxc.Shutdown()); err != nil {
		fmt.Fprintln(os.Stderr, "export:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("export", flag.ContinueOnError)
	dir := flags.String("dir", "step", "`folder` of the files")
	target := flags.String("target", "mac", "`machine` that runs the step: mac, or here for the default device")
	gradients := flags.String("gradients", "ours", "`source` of the gradients: ours or mlx; on a CPU, -target here requires mlx")
	steps := flags.Int("run", 0, "run this `number` of steps of the files in -dir instead of writing them")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	o, ok := map[string]operations{"ours": withKernels, "mlx": builtIn}[*gradients]
	switch {
	case !ok:
		return fmt.Errorf("-gradients is %q; it must be ours or mlx", *gradients)
	case *target != "mac" && *target != "here":
		return fmt.Errorf("-target is %q; it must be mac or here", *target)
	case *steps < 0:
		return fmt.Errorf("-run is %d; it must be positive", *steps)
	case *steps > 0:
		losses, err := resume(*dir, *steps)
		if err == nil {
			fmt.Fprintf(out, "loss %.4f at first, %.4f after %d steps\n", losses[0], losses[len(losses)-1], *steps-1)
		}
		return err
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	kernels, err := export(*dir, o, *target == "mac")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "wrote %s and %s to %s, with %d kernels\n", stepFile, stateFile, *dir, len(kernels))
	if len(kernels) > 0 {
		fmt.Fprintln(out, strings.Join(kernels, "\n"))
	}
	return nil
}
