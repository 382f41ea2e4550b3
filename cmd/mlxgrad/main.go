// Command mlxgrad installs MLX, compares this project's gradients with MLX's and a float64 oracle, times them, and
// checks Metal kernels.
//
//	mlxgrad setup     installs MLX for the user
//	mlxgrad parity    compares gradients, prints a summary, and writes JSON on request
//	mlxgrad bench     times our gradients and MLX's, prints tables, and writes JSON on request
//	mlxgrad report    renders that JSON as text, CSV, JUnit XML, Markdown or HTML
//	mlxgrad sanitize  looks for races and other bugs of Metal kernels
//	mlxgrad traffic   counts the bytes that Metal kernels move
//	mlxgrad source    prints the Metal text that MLX generates for a kernel
//	mlxgrad doctor    examines the machine and says how to fix problems
//	mlxgrad version   prints versions
//
// It exits 0 on success; 1 after a failed comparison, a finding, a run without results or a missing component; 2 if the
// command line is wrong; and 130 after an interruption.
//
// The environment variable MLXGRAD_MEMORY_LIMIT, such as 3GiB, sets MLX's memory limit.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/internal/cli"
	"github.com/mlxgrad/mlxgrad/internal/memorylimit"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func main() {
	status := run(os.Args[1:], os.Stdout, os.Stderr)
	if err := mlxc.Shutdown(); err != nil {
		fmt.Fprintln(os.Stderr, "mlxgrad:", err)
	}
	os.Exit(status)
}

// newRoot returns the command with its verbs. If names is set, help texts list the operations, which loads MLX. It is
// false for setup, which may replace MLX.
func newRoot(names bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "mlxgrad",
		Short: "Compare, time and check gradients and Metal kernels on MLX",
		Long: `Compares gradients on MLX arrays with MLX's own and a float64 oracle, times them, and checks Metal
kernels on Linux.

` + cli.ExitCodes("after a failed comparison, a finding,\na run without results or a missing component") + `

Environment:

    MLXGRAD_MEMORY_LIMIT  limit of MLX's memory, such as 3GiB
    MLXGRAD_CACHE         folder of compiled kernels
    MLXGRAD_LIB           library libmlxg, or its folder; see docs/platforms.md
    CXX                   C++ compiler of kernels for the CPU
    NO_COLOR              set to any text, it switches colors off

Progress is shown on a terminal only.`,
		Example: `  mlxgrad doctor
  mlxgrad parity --op softmax
  mlxgrad sanitize kernel.metal`,
		RunE: func(*cobra.Command, []string) error { return errors.New("no verb given") },
	}
	root.AddCommand(
		newSetup(), newParity(names), newBench(names), newReport(), newSanitize(), newTraffic(), newSource(), newLaunch(), newDoctor(),
		newVersion(),
	)
	return root
}

// checkMLX returns an error that says how to proceed if MLX cannot be used.
func checkMLX() error {
	if err := mlxc.Check(); err != nil {
		return fmt.Errorf("%w\nRun \"mlxgrad doctor\" for help", err)
	}
	return nil
}

// run runs the command and returns its exit code.
func run(args []string, stdout, stderr io.Writer) int {
	if err := memorylimit.FromEnvironment(); err != nil {
		fmt.Fprintf(stderr, "mlxgrad: %v\n", err)
		return cli.ExitUsage
	}
	return cli.Main(newRoot(len(args) == 0 || args[0] != "setup"), args, stdout, stderr)
}
