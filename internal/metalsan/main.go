// Package metalsan implements the command line of the sanitizer. The commands metalsan and mlxgrad sanitize share it.
package metalsan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"
)

// ExitUsage is the exit code for a wrong command line.
const ExitUsage = 2

// The other exit codes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitInterrupted = 130 // 128 + SIGINT, as in shells
)

// ErrFailed is returned by a command that has printed its failures.
var ErrFailed = errors.New("failed")

// ErrInterrupted is returned by a command that a signal interrupted.
var ErrInterrupted = errors.New("interrupted")

// Main parses the arguments by a grammar of [kong], runs the command that they choose, and returns the exit code: 0 on
// success, 1 on failure, 2 if the command line is wrong, 130 after an interruption. A request for help ends
// the process.
func Main(name, description string, grammar any, args []string, stdout, stderr io.Writer, options ...kong.Option) int {
	parser, err := kong.New(grammar, append([]kong.Option{
		kong.Name(name),
		kong.Description(description),
		kong.Writers(stdout, stderr),
		kong.BindTo(stdout, (*io.Writer)(nil)),
		kong.Bind(Streams{stdout, stderr}),
	}, options...)...)
	if err != nil {
		panic(err) // the grammar is wrong, which every test of the command shows
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\nRun \"%s --help\" for usage.\n", name, err, name)
		return ExitUsage
	}
	switch err := ctx.Run(); {
	case err == nil:
		return exitOK
	case errors.Is(err, ErrInterrupted):
		return exitInterrupted
	case errors.Is(err, ErrFailed):
		return exitFailure
	default:
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return exitFailure
	}
}

// UntilSignal returns a context that the first interrupt or termination signal cancels. The second signal ends the
// process.
func UntilSignal() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// Pattern compiles a flag's regular expression. It is nil for an empty text.
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
