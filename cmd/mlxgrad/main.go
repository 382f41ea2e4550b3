// Command mlxgrad compares this project's gradients with MLX's built-in ones and with a float64
// oracle, checks Metal kernels, and says what it found on the machine.
//
//	mlxgrad setup     installs MLX for the user
//	mlxgrad parity    compares gradients, prints a summary, and writes JSON on request
//	mlxgrad bench     times our gradients and MLX's, and writes tables, plots and raw figures
//	mlxgrad sanitize  looks for races and other bugs of Metal kernels
//	mlxgrad traffic   counts the bytes that Metal kernels move
//	mlxgrad source    prints the Metal text that MLX generates for a kernel
//	mlxgrad doctor    prints what was found and what to do about what is missing
//	mlxgrad version   prints versions
//
// It exits 0 on success; 1 if a comparison failed, something was found, nothing ran or something required is missing;
// 2 if the command line is wrong; and 130 if it was interrupted.
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
	Setup    setupCommand    `cmd:"" help:"Install MLX for the user, from Apple's package, and what this project needs beside it."`
	Parity   parityCommand   `cmd:"" help:"Compare our gradients with MLX's and with a float64 oracle."`
	Bench    benchCommand    `cmd:"" help:"Time our gradients and MLX's built-in ones."`
	Sanitize sanitizeCommand `cmd:"" help:"Look for races and other bugs of Metal kernels, yours or ours."`
	Traffic  trafficCommand  `cmd:"" help:"Count the bytes that Metal kernels move, and where their threads meet."`
	Source   sourceCommand   `cmd:"" help:"Print the Metal text that MLX generates for a kernel."`
	Doctor   doctorCommand   `cmd:"" help:"Print what was found on this machine, and what to do about what is missing."`
	Version  versionCommand  `cmd:"" help:"Print the versions of this command, MLX and mlx-c."`
}

// checkMLX says what to do if MLX cannot be used.
func checkMLX() error {
	if err := mlxc.Check(); err != nil {
		return fmt.Errorf("%w\nRun \"mlxgrad doctor\" for what to do", err)
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
	return metalsan.Main("mlxgrad",
		"Gradients of MLX, held against MLX's own and against a float64 oracle, and Metal kernels, checked on any machine.",
		&commandLine{Sanitize: sanitizeCommand{metalsan.Command{Program: "mlxgrad sanitize", Own: shippedSanitizeLaunches}}}, args, stdout, stderr, vars)
}
