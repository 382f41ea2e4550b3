// Command mlxgrad installs MLX, compares this project's gradients with MLX's and a float64 oracle, times them, and
// checks Metal kernels.
//
//	mlxgrad setup     installs MLX for the user
//	mlxgrad parity    compares gradients, prints a summary, and writes JSON on request
//	mlxgrad bench     times our gradients and MLX's, and writes tables, plots and raw figures
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
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/mlxgrad/mlxgrad/internal/memorylimit"
	"github.com/mlxgrad/mlxgrad/internal/metalsan"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func main() {
	status := run(os.Args[1:], os.Stdout, os.Stderr)
	if err := mlxc.Shutdown(); err != nil {
		fmt.Fprintln(os.Stderr, "mlxgrad:", err)
	}
	os.Exit(status)
}

// commandLine is the grammar of the command.
type commandLine struct {
	Setup    setupCommand    `cmd:"" help:"Install MLX from Apple's package, and our libraries, in the user's data folder."`
	Parity   parityCommand   `cmd:"" help:"Compare our gradients with MLX's and with a float64 oracle."`
	Bench    benchCommand    `cmd:"" help:"Time our gradients and MLX's built-in ones."`
	Sanitize sanitizeCommand `cmd:"" help:"Check Metal kernels, yours or ours, for races and other bugs."`
	Traffic  trafficCommand  `cmd:"" help:"Count the bytes that Metal kernels move, their barriers and SIMD operations."`
	Source   sourceCommand   `cmd:"" help:"Print the Metal text that MLX generates for a kernel."`
	Doctor   doctorCommand   `cmd:"" help:"Examine this machine, and say how to fix problems."`
	Version  versionCommand  `cmd:"" help:"Print the versions of this command, MLX and mlx-c."`
}

// checkMLX returns an error that says how to proceed if MLX cannot be used.
func checkMLX() error {
	if err := mlxc.Check(); err != nil {
		return fmt.Errorf("%w\nRun \"mlxgrad doctor\" for help", err)
	}
	return nil
}

// run runs the command and returns its exit code. A request for help ends the process.
func run(args []string, stdout, stderr io.Writer) int {
	if err := memorylimit.FromEnvironment(); err != nil {
		fmt.Fprintf(stderr, "mlxgrad: %v\n", err)
		return metalsan.ExitUsage
	}
	vars := kong.Vars{"ops": "none", "benchOps": "none", "withoutFiles": " Without any, the kernels of this project."}
	if len(args) == 0 || args[0] != "setup" { // MLX is loaded to list the operations, and setup may replace it
		vars["ops"], vars["benchOps"] = opNames(), benchOpNames()
	}
	return metalsan.Main(
		"mlxgrad",
		"Compares gradients on MLX arrays with MLX's own and a float64 oracle, and checks Metal kernels on Linux.",
		&commandLine{
			Sanitize: sanitizeCommand{metalsan.Command{Program: "mlxgrad sanitize", Own: shippedSanitizeLaunches}},
		},
		args,
		stdout,
		stderr,
		vars,
	)
}
