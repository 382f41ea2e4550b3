// Command mlxgrad compares this project's gradients with MLX's built-in ones and with a float64
// oracle, checks Metal kernels, and says what it found on the machine.
//
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
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/mlxgrad/mlxgrad/internal/memorylimit"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 and the number of SIGINT, as shells have it.
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// commandLine is the grammar of the command.
type commandLine struct {
	Parity   parityCommand   `cmd:"" help:"Compare our gradients with MLX's and with a float64 oracle."`
	Bench    benchCommand    `cmd:"" help:"Time our gradients and MLX's built-in ones."`
	Sanitize sanitizeCommand `cmd:"" help:"Look for races and other bugs of Metal kernels, yours or ours."`
	Traffic  trafficCommand  `cmd:"" help:"Count the bytes that Metal kernels move, and where their threads meet."`
	Source   sourceCommand   `cmd:"" help:"Print the Metal text that MLX generates for a kernel."`
	Doctor   doctorCommand   `cmd:"" help:"Print what was found on this machine, and what to do about what is missing."`
	Version  versionCommand  `cmd:"" help:"Print the versions of this command, MLX and mlx-c."`
}

// errFailed is the error of a command that has said on its output what failed.
var errFailed = errors.New("failed")

// checkMLX says what to do if MLX cannot be used.
func checkMLX() error {
	if err := mlxc.Check(); err != nil {
		return fmt.Errorf("%w\nRun \"mlxgrad doctor\" for what to do", err)
	}
	return nil
}

// untilSignal is a context that the first signal ends, and with it the run after what it is at. The
// second one ends the process.
func untilSignal() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// patternOf compiles a flag's regular expression; nil if there is none.
func patternOf(flag, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return pattern, nil
}

// errInterrupted is the error of a command that a signal ended.
var errInterrupted = errors.New("interrupted")

// run runs the command and returns its exit code. A request for help ends the process.
func run(args []string, stdout, stderr io.Writer) int {
	parser, err := kong.New(&commandLine{},
		kong.Name("mlxgrad"),
		kong.Description("Gradients of MLX, held against MLX's own and against a float64 oracle, and Metal kernels, checked on any machine."),
		kong.Writers(stdout, stderr),
		kong.BindTo(stdout, (*io.Writer)(nil)),
		kong.Bind(streams{stdout, stderr}),
		kong.Vars{"ops": opNames(), "benchOps": benchOpNames()},
	)
	if err != nil {
		panic(err) // The grammar is wrong, which every test of this command would show.
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "mlxgrad: %v\nRun \"mlxgrad --help\" for usage.\n", err)
		return exitUsage
	}
	if err := memorylimit.FromEnvironment(); err != nil {
		fmt.Fprintf(stderr, "mlxgrad: %v\n", err)
		return exitUsage
	}
	switch err := ctx.Run(); {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, errFailed):
		return exitFailure
	default:
		fmt.Fprintf(stderr, "mlxgrad: %v\n", err)
		return exitFailure
	}
}
