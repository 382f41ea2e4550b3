package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/mlxgrad/mlxgrad"
	"github.com/mlxgrad/mlxgrad/internal/metalsan"
	"github.com/mlxgrad/mlxgrad/internal/setup"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// setupCommand is "mlxgrad setup".
type setupCommand struct {
	Backend   string `help:"MLX's backend: cpu, cuda13 or cuda12 on Linux, metal on macOS. By default the present one, at first cpu, on macOS metal. Also MLXGRAD_BACKEND." xor:"backend"`
	MLX       string `name:"mlx" placeholder:"VERSION" help:"The version of MLX; an error lists the known ones. By default the present one, at first the newest tested one. Also MLXGRAD_MLX." xor:"mlx"`
	Offline   string `placeholder:"DIR" help:"Download nothing and take the files from this folder. An error names missing files." xor:"offline"`
	Uninstall bool   `help:"Remove the installed files of all versions of mlxgrad." xor:"backend,mlx,offline"`
}

// Run sets up MLX in the user's folder and loads it once.
func (c setupCommand) Run(out metalsan.Streams) error {
	ctx, stop := metalsan.UntilSignal()
	defer stop()
	verb := "setup"
	if c.Uninstall {
		verb = "setup --uninstall"
	}
	code := setup.Report(ctx, out.Err, verb, func(progress func(setup.Progress)) error {
		if c.Uninstall {
			return mlxgrad.Uninstall(ctx)
		}
		_, err := mlxgrad.Setup(ctx, mlxgrad.SetupOptions{
			MLX:     cmp.Or(c.MLX, os.Getenv("MLXGRAD_MLX")),
			Backend: cmp.Or(c.Backend, os.Getenv("MLXGRAD_BACKEND")),
			Offline: c.Offline, Progress: progress,
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
		return metalsan.ErrInterrupted
	case code != 0:
		return metalsan.ErrFailed
	case c.Uninstall:
		return nil
	}
	_, err := fmt.Fprintf(out.Out, "MLX %s is ready on this machine's %s.\n", mlxc.Version(), mlxc.DefaultDevice())
	return err
}
