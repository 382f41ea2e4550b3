// Command metalsan finds races and other bugs of Metal kernels on a CPU. It needs a C++ compiler, but no MLX, GPU or
// Mac. See docs/sanitize.md.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/mlxgrad/mlxgrad/internal/metalsan"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

type commandLine struct {
	metalsan.Command
	Version kong.VersionFlag `help:"Print the version."`
}

func run(args []string, stdout, stderr io.Writer) int {
	return metalsan.Main("metalsan", "Finds races and other bugs of Metal kernels on a CPU.",
		&commandLine{Command: metalsan.Command{Program: "metalsan"}}, args, stdout, stderr,
		kong.Vars{"withoutFiles": "", "version": fmt.Sprintf("metalsan %s", metalsan.Version())})
}
