package metalsan

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

// defaultTimeout is the default of --timeout. The flag's tag repeats it.
const defaultTimeout = time.Minute

// Command is the command line that checks kernels.
type Command struct {
	Flags
	Strict    bool          `help:"Fail on portability findings too. Always on for this project's kernels."`
	Schedules int           `help:"Number of thread orders to try: ascending, descending, then random (default: ${default})." default:"3" placeholder:"N"`
	Timeout   time.Duration `help:"Time limit for all schedules of a launch together (default: ${default})." default:"1m" placeholder:"TIME"`
	JSON      string        `name:"json" help:"Also write the report as JSON to this file. With - it goes to standard output, and the text to standard error." placeholder:"FILE"`
	SARIF     string        `name:"sarif" help:"Also write the findings as SARIF 2.1.0 to this file. With - they go to standard output, and the text to standard error." placeholder:"FILE"`

	Program string          `kong:"-"` // words of the shell that start the command
	Own     func() []Launch `kong:"-"` // launches to check without files; nil if files are required
}

// Help returns the text that --help prints above the flags.
func (*Command) Help() string {
	return `Runs kernels on this machine's CPU under a checker. It finds bugs that a GPU hides: data races,
accesses out of bounds, reads of uninitialized values, unwritten outputs, divergent barriers and
SIMD-group functions, and launches that crash or do not end.

A comment in the shader file describes the launches of its kernels:

  // launch: scale grid=1000 threadgroup=256 T=float16
  //   with: x=float16[10,100] factor=float32:2.5 y=out:float16[10,100]

docs/sanitize.md documents these descriptions. The exit code is 0 if no finding fails the command,
1 if one does or nothing ran, and 2 if the command line is wrong.`
}

// Validate returns an error if the flags are wrong.
func (c *Command) Validate() error {
	if len(c.Files) == 0 && c.Own == nil {
		return errors.New("no shader file given; name at least one")
	}
	if c.Schedules < 1 {
		return fmt.Errorf("--schedules is %d; it must be at least 1", c.Schedules)
	}
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout is %v; it must be positive", c.Timeout)
	}
	if c.JSON == standardOutput && c.SARIF == standardOutput {
		return errors.New("--json and --sarif cannot both be -")
	}
	if err := c.Flags.Check(); err != nil {
		return err
	}
	if err := CheckOutput("--json", c.JSON); err != nil {
		return err
	}
	return CheckOutput("--sarif", c.SARIF)
}

// Run checks the launches and writes the reports.
func (c *Command) Run(s Streams) error {
	ctx, stop := UntilSignal()
	defer stop()
	chosen := c.Launches(c.Own)
	r := newReport(c, chosen)
	out := s.Text(c.JSON, c.SARIF)
	for _, f := range chosen.Failed {
		out.Print(f.String())
	}
	c.check(ctx, chosen.List, func(done []sanitizedLaunch) {
		out.Print(r.add(done))
	})
	r.Incomplete = ctx.Err() != nil
	out.Print(r.summary())
	if err := s.WriteJSON(c.JSON, r); err != nil {
		return err
	}
	if c.SARIF != "" {
		if err := s.WriteJSON(c.SARIF, newSARIF(r)); err != nil {
			return err
		}
	}
	switch {
	case out.Err() != nil:
		return out.Err()
	case r.Incomplete:
		return ErrInterrupted
	case r.failed():
		return ErrFailed
	}
	return nil
}

// check runs the launches on several goroutines. It calls done for one kernel after the other, with all its launches.
func (c *Command) check(ctx context.Context, launches []Launch, done func([]sanitizedLaunch)) {
	type result struct {
		report *sanitizer.Report
		err    error
	}
	results := make([]chan result, len(launches))
	for i := range results {
		results[i] = make(chan result, 1)
	}
	var next sync.Mutex
	at := 0
	for range min(runtime.GOMAXPROCS(0), len(launches)) {
		go func() {
			for {
				next.Lock()
				i := at
				at++
				next.Unlock()
				if i >= len(launches) {
					return
				}
				report, err := c.sanitize(ctx, launches[i])
				results[i] <- result{report, err}
			}
		}()
	}
	for _, group := range byKernel(launches) {
		var list []sanitizedLaunch
		for _, i := range group {
			r := <-results[i]
			if ctx.Err() != nil && r.err != nil {
				continue // interrupted before it ran
			}
			list = append(list, newSanitizedLaunch(launches[i], r.report, r.err))
		}
		if len(list) > 0 {
			done(list)
		}
	}
}

// byKernel groups the indices of launches of one kernel.
func byKernel(launches []Launch) [][]int {
	var groups [][]int
	at := map[string]int{}
	for i, l := range launches {
		key := l.File + "\x00" + l.Kernel
		g, ok := at[key]
		if !ok {
			g = len(groups)
			at[key] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

func (c *Command) sanitize(ctx context.Context, l Launch) (*sanitizer.Report, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return l.Sanitize(ctx, sanitizer.Config{Schedules: c.Schedules, Seed: c.Seed, Timeout: c.Timeout})
}

// strict reports whether portability findings fail the command.
func (c *Command) strict() bool { return c.Strict || len(c.Files) == 0 }

// replay returns the command that repeats the run.
func (c *Command) replay() string {
	words := []string{c.Program, fmt.Sprintf("--seed=%d", c.Seed), fmt.Sprintf("--schedules=%d", c.Schedules)}
	if c.Strict {
		words = append(words, "--strict")
	}
	if c.Timeout != defaultTimeout {
		words = append(words, fmt.Sprintf("--timeout=%v", c.Timeout))
	}
	if c.Case != "" {
		words = append(words, "--case="+shellQuote(c.Case))
	}
	for _, folder := range c.Include {
		words = append(words, "--include="+shellQuote(folder))
	}
	for _, file := range c.Files {
		words = append(words, shellQuote(file))
	}
	return strings.Join(words, " ")
}

// shellQuote quotes a word for a shell.
func shellQuote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
