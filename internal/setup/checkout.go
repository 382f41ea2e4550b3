package setup

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Main is the set-up program. args are a checkout's folder third_party/mlx-c, followed by the flags of a set-up or by
// another verb with its arguments. Main returns the exit code.
func Main(args []string, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	verb := "setup"
	if len(args) > 1 && verbs[args[1]] != nil {
		verb = args[1]
	}
	return Report(ctx, stderr, verb, func(progress func(Progress)) error { return Checkout(ctx, progress, args) })
}

// verbs maps the verbs other than setup to their functions.
var verbs = map[string]func(*setup, context.Context, *manifest, []string) error{
	"install": (*setup).installTo,
	"package": (*setup).packageTo,
	"release": (*setup).release,
}

// Checkout sets up the folder args[0] with the flags args[1:]. If args[1] is a verb, Checkout runs the verb on the
// installation instead.
func Checkout(ctx context.Context, progress func(Progress), args []string) error {
	if len(args) == 0 {
		return failf("run ./build.sh instead", "the folder to install to is missing")
	}
	root, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	s, err := newSetup(root, os.DirFS(filepath.Dir(filepath.Dir(root))), progress)
	if err != nil {
		return err
	}
	installed, unlock, readOnly, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if len(args) > 1 {
		if run := verbs[args[1]]; run != nil {
			return run(s, ctx, installed, args[2:])
		}
	}
	if err := s.parse(args[1:], os.Getenv, installed); err != nil {
		return err
	}
	return s.ensure(ctx, installed, readOnly)
}

// repository returns the root folder of the checkout.
func (s *setup) repository() string { return filepath.Dir(filepath.Dir(s.root)) }

// Report runs a verb and prints its steps, and its error in one line with a remedy. It returns the exit code.
func Report(ctx context.Context, stderr io.Writer, verb string, run func(func(Progress)) error) int {
	p := newPrinter(stderr, verb)
	err := run(p.print)
	p.line.End()
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(stderr,
			"mlxgrad %s: interrupted: the former installation is unchanged; run it again to continue\n", verb)
	case err != nil:
		fmt.Fprintf(stderr, "mlxgrad %s: %s\n", verb, describe(err))
	default:
		return 0
	}
	return 1
}
