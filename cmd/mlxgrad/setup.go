package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad"
	"github.com/mlxgrad/mlxgrad/internal/cli"
	"github.com/mlxgrad/mlxgrad/internal/setup"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// setupCommand is "mlxgrad setup".
type setupCommand struct {
	backend   string
	mlx       string
	offline   string
	uninstall bool
}

func newSetup() *cobra.Command {
	var c setupCommand
	command := &cobra.Command{
		Use:   "setup",
		Short: "Install MLX from Apple's package, and our libraries, in the user's data folder",
		Args:  cli.NoArgs,
		Example: `  mlxgrad setup
  mlxgrad setup --backend cuda13
  mlxgrad setup --offline downloads
  mlxgrad setup --uninstall`,
	}
	f := command.Flags()
	f.StringVar(&c.backend, "backend", "", "MLX's backend `NAME`: cpu, cuda13 or cuda12 on Linux, metal on macOS; "+
		"default: the installed one, else cpu, or metal on macOS; also MLXGRAD_BACKEND")
	f.StringVar(&c.mlx, "mlx", "", "`VERSION` of MLX; an error lists the known ones; "+
		"default: the installed one, else the newest tested one; also MLXGRAD_MLX")
	f.StringVar(&c.offline, "offline", "", "download nothing and take the files from the folder `DIR`; an error names missing files")
	f.BoolVar(&c.uninstall, "uninstall", false, "remove the installed files of all versions of mlxgrad")
	command.MarkFlagsMutuallyExclusive("backend", "uninstall")
	command.MarkFlagsMutuallyExclusive("mlx", "uninstall")
	command.MarkFlagsMutuallyExclusive("offline", "uninstall")
	return cli.Verb(command, nil, c.run)
}

// run sets up MLX in the user's folder and loads it once.
func (c *setupCommand) run(out cli.Streams) error {
	ctx, stop := cli.UntilSignal()
	defer stop()
	verb := "setup"
	if c.uninstall {
		verb = "setup --uninstall"
	}
	code := setup.Report(ctx, out.Err, verb, func(progress func(setup.Progress)) error {
		if c.uninstall {
			return mlxgrad.Uninstall(ctx)
		}
		_, err := mlxgrad.Setup(ctx, mlxgrad.SetupOptions{
			MLX:     cmp.Or(c.mlx, os.Getenv("MLXGRAD_MLX")),
			Backend: cmp.Or(c.backend, os.Getenv("MLXGRAD_BACKEND")),
			Offline: c.offline, Progress: progress,
		})
		if err != nil {
			return err
		}
		if err := mlxc.Check(); err != nil {
			return fmt.Errorf("MLX is set up but cannot be used here: %w", err)
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return cli.ErrInterrupted
	case code != 0:
		return cli.ErrFailed
	case c.uninstall:
		return nil
	}
	_, err := fmt.Fprintf(out.Out, "MLX %s is ready on this machine's %s.\n", mlxc.Version(), mlxc.DefaultDevice())
	return err
}
