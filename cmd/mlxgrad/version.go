package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/internal/cli"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func newVersion() *cobra.Command {
	return cli.Verb(&cobra.Command{
		Use:     "version",
		Short:   "Print the versions of this command, MLX and mlx-c",
		Example: "  mlxgrad version",
		Args:    cli.NoArgs,
	}, nil, printVersions)
}

// printVersions prints one line for each component.
func printVersions(s cli.Streams) error {
	_, err := fmt.Fprintf(s.Out, "mlxgrad %s\nMLX %s\nmlx-c %s\n%s %s/%s\n",
		cli.Version(), mlxc.Version(), mlxc.CVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
