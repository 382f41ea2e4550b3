// Command metalsan finds races and other bugs of Metal kernels on a CPU. It needs a C++ compiler, but no MLX, GPU or
// Mac. See docs/sanitize.md.
package main

import (
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/cli"
	"github.com/mlxgrad/mlxgrad/internal/metalsan"
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // a short run: collections would take a third of the CPU time of a long shader
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func newCommand() *cobra.Command {
	c := (&metalsan.Command{Program: "metalsan"}).New("metalsan FILE...", "Find races and other bugs of Metal kernels on a CPU")
	c.Version = cli.Version()
	inForce, open := sanitizer.Containment()
	if open != "" {
		inForce += "; not restricted: " + open
	}
	c.SetVersionTemplate("metalsan {{.Version}}\ncontainment: " + inForce + "\n")
	return c
}

func run(args []string, stdout, stderr io.Writer) int {
	return cli.Main(newCommand(), args, stdout, stderr)
}
