// Command cmd is ./build.sh upgrade. Its first argument is the folder third_party/mlx-c of the checkout; build.sh documents
// the others.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/internal/cli"
	"github.com/mlxgrad/mlxgrad/internal/setup"
	"github.com/mlxgrad/mlxgrad/internal/upgrade"
)

func main() {
	var o upgrade.Options
	command := &cobra.Command{Use: "./build.sh upgrade", Args: cobra.ExactArgs(2)}
	f := command.Flags()
	f.StringVar(&o.From, "from", "", "compare with this `VERSION` of the lock file")
	f.BoolVar(&o.Write, "write", false, "add the release to the lock file")
	f.StringVar(&o.Markdown, "markdown", "", "also write the report as Markdown to `FILE`")
	os.Exit(cli.Main(cli.Verb(command, func(args []string) error {
		o.Root, o.Version = args[0], args[1]
		return nil
	}, func(s cli.Streams) error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		if setup.Report(ctx, s.Err, "upgrade", func(progress func(setup.Progress)) error {
			return upgrade.Run(ctx, o, s.Out, progress)
		}) != 0 {
			return cli.ErrFailed
		}
		return nil
	}), os.Args[1:], os.Stdout, os.Stderr))
}
