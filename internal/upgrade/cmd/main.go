// Command cmd is ./build.sh upgrade. Its first argument is the folder third_party/mlx-c of the checkout; build.sh documents
// the others.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/mlxgrad/mlxgrad/internal/setup"
	"github.com/mlxgrad/mlxgrad/internal/upgrade"
)

func main() {
	var o struct {
		Root     string `arg:""`
		Version  string `arg:""`
		From     string
		Write    bool
		Markdown string
	}
	kong.Parse(&o, kong.Name("./build.sh upgrade"))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(setup.Report(ctx, os.Stderr, "upgrade", func(progress func(setup.Progress)) error {
		return upgrade.Run(ctx, upgrade.Options(o), os.Stdout, progress)
	}))
}
