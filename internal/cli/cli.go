// Package cli has the parts that the commands mlxgrad and metalsan share: exit codes, flags, output files and progress.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes of the commands. ExitCodes documents them.
const (
	exitOK          = 0
	exitFailure     = 1
	ExitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as in shells
)

// ExitCodes is the paragraph of help texts and man pages about exit codes. failure says when the code is 1.
func ExitCodes(failure string) string {
	return fmt.Sprintf(`Exit codes: %d on success; %d %s; %d if the command line is wrong;
%d after an interruption.`, exitOK, exitFailure, failure, ExitUsage, exitInterrupted)
}

// ErrFailed is returned by a command that has printed its failures.
var ErrFailed = errors.New("failed")

// ErrInterrupted is returned by a command that a signal interrupted.
var ErrInterrupted = errors.New("interrupted")

// runError is an error of a command whose command line is right.
type runError struct{ error }

func (e runError) Unwrap() error { return e.error }

// Verb sets the function of a command. validate checks the flags; its errors are errors of the command line. run gets
// the streams of the process. validate may be nil.
func Verb(c *cobra.Command, validate func(args []string) error, run func(Streams) error) *cobra.Command {
	c.RunE = func(_ *cobra.Command, args []string) error {
		if validate != nil {
			if err := validate(args); err != nil {
				return err
			}
		}
		if err := run(Streams{c.OutOrStdout(), c.ErrOrStderr()}); err != nil {
			return runError{err}
		}
		return nil
	}
	return c
}

// Main runs the command that the arguments choose and returns the exit code. It prints errors to stderr, except
// ErrFailed and ErrInterrupted.
func Main(root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages |", ".FlagUsagesWrapped 100 |"))
	c, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	var ran runError
	switch {
	case !errors.As(err, &ran):
		fmt.Fprintf(stderr, "%s: %v\nRun \"%s --help\" for usage.\n", root.Name(), err, c.CommandPath())
		return ExitUsage
	case errors.Is(err, ErrInterrupted):
		return exitInterrupted
	case errors.Is(err, ErrFailed):
		return exitFailure
	default:
		fmt.Fprintf(stderr, "%s: %v\n", root.Name(), err)
		return exitFailure
	}
}

// UntilSignal returns a context that the first interrupt or termination signal cancels. The second signal ends the
// process. The caller must call stop.
func UntilSignal() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// Pattern compiles a flag's regular expression. It returns nil for an empty text. Errors name the flag.
func Pattern(flag, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return pattern, nil
}

// Version returns the module's version as Go recorded it in the program.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}
