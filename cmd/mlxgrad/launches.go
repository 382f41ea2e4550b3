package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/cli"
	"github.com/mlxgrad/mlxgrad/internal/metalsan"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// newSanitize returns "mlxgrad sanitize". Without files it checks the kernels of this project, which needs MLX.
func newSanitize() *cobra.Command {
	c := &metalsan.Command{Program: "mlxgrad sanitize", Own: shippedSanitizeLaunches}
	command := c.New("sanitize [FILE...]", "Check Metal kernels, yours or ours, for races and other bugs")
	command.Long += "\n\nWithout a file the command checks the kernels of this project."
	return cli.Verb(command, c.Validate, func(s cli.Streams) error {
		if len(c.Files) == 0 {
			if err := checkMLX(); err != nil {
				return err
			}
		}
		return c.Run(s)
	})
}

// shippedLaunch is a launch of a kernel of this project.
type shippedLaunch struct {
	metalsan.Launch
	dtype   mlxc.DType
	backend mlxc.Backend
}

// shippedLaunches returns the launches of the kernels of this project.
func shippedLaunches(set ops.CaseSet) []shippedLaunch {
	var list []shippedLaunch
	for _, l := range ops.KernelLaunches(set) {
		list = append(list, shippedLaunch{dtype: l.DType, backend: l.Backend, Launch: metalsan.Launch{
			Kernel: l.Kernel.Name(), Label: fmt.Sprintf("%v %s, %s geometry", l.DType, l.Case, l.Backend),
			Grid: l.Launch.Grid, Threadgroup: l.Launch.Threadgroup,
			Sanitize: func(ctx context.Context, c sanitizer.Config) (*sanitizer.Report, error) {
				r, err := l.Kernel.Sanitize(ctx, l.Launch, c, l.Inputs()...)
				if err != nil {
					return nil, err
				}
				return r.Report, nil
			},
			Source: func() (string, error) { return l.Kernel.MetalSource(l.Launch, l.Inputs()...) },
		}})
	}
	return list
}

func shippedSanitizeLaunches() []metalsan.Launch { return launchesOf(ops.RaggedCases) }

func launchesOf(set ops.CaseSet) []metalsan.Launch {
	var list []metalsan.Launch
	for _, l := range shippedLaunches(set) {
		list = append(list, l.Launch)
	}
	return list
}
