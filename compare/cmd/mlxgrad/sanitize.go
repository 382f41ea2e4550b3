package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/ops"
)

// usualTimeout is the default of --timeout, which its tag says too.
const usualTimeout = time.Minute

// sanitizeCommand is "mlxgrad sanitize".
type sanitizeCommand struct {
	launchFlags
	Strict    bool          `help:"Let findings about portability fail as errors do. Always so for this project's kernels."`
	Schedules int           `help:"How many orders of threads to try: in order, reversed, and from the third on shuffled (default: ${default})." default:"3" placeholder:"N"`
	Timeout   time.Duration `help:"How long all schedules of a launch may take together (default: ${default})." default:"1m" placeholder:"TIME"`
	JSON      string        `name:"json" help:"Also write the report as JSON to this file, or with - to standard output, and the text to standard error." placeholder:"FILE"`
}

// Help is what --help says beyond the flags.
func (*sanitizeCommand) Help() string {
	return `Runs kernels on this machine's CPU under a checker that finds what a GPU hides: data races, accesses
out of bounds, reads of what no thread wrote, outputs that no thread writes, barriers and SIMD functions that some threads miss, and launches
that crash or never end.

A shader file says in a comment how its kernels are launched:

  // launch: scale grid=1000 threadgroup=256 T=float16
  //   with: x=float16[10,100] factor=float32:2.5 y=out:float16[10,100]

docs/sanitize.md describes it. The exit code is 0 if nothing was found that counts, 1 if something was or
nothing ran, and 2 if the command line is wrong.`
}

// Validate finds what is wrong with the flags before anything runs.
func (c *sanitizeCommand) Validate() error {
	if c.Schedules < 1 {
		return fmt.Errorf("--schedules must be at least 1, not %d", c.Schedules)
	}
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout must be more than nothing, not %v", c.Timeout)
	}
	if err := c.validate(); err != nil {
		return err
	}
	return checkFileOf("--json", c.JSON)
}

// Run checks, and reports as text and in the JSON file.
func (c *sanitizeCommand) Run(s streams) error {
	if err := checkMLX(); err != nil {
		return err
	}
	ctx, stop := untilSignal()
	defer stop()
	chosen := c.launches(ops.RaggedCases)
	r := newSanitizeReport(c, chosen)
	out := &printer{w: s.text(c.JSON)}
	for _, f := range chosen.failed {
		out.print(f.String())
	}
	c.check(ctx, chosen.list, func(done []sanitizedLaunch) {
		out.print(r.add(done))
	})
	r.Incomplete = ctx.Err() != nil
	out.print(r.summary())
	if err := s.writeJSON(c.JSON, r); err != nil {
		return err
	}
	switch {
	case out.err != nil:
		return fmt.Errorf("printing the report: %w", out.err)
	case r.Incomplete:
		return errInterrupted
	case r.failed():
		return errFailed
	}
	return nil
}

// check runs the launches, some at a time, and gives done those of one kernel after the other.
func (c *sanitizeCommand) check(ctx context.Context, launches []kernelLaunch, done func([]sanitizedLaunch)) {
	type result struct {
		report *customkernels.SanitizeReport
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
				continue // It was not run.
			}
			list = append(list, newSanitizedLaunch(launches[i], r.report, r.err))
		}
		if len(list) > 0 {
			done(list)
		}
	}
}

// byKernel groups the indices of launches of one kernel.
func byKernel(launches []kernelLaunch) [][]int {
	var groups [][]int
	at := map[string]int{}
	for i, l := range launches {
		key := l.file + "\x00" + l.kernel.Name()
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

func (c *sanitizeCommand) sanitize(ctx context.Context, l kernelLaunch) (*customkernels.SanitizeReport, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return l.kernel.Sanitize(ctx, l.launch, customkernels.SanitizeConfig{
		Schedules: c.Schedules, Seed: c.Seed, Timeout: c.Timeout,
	}, l.inputs()...)
}

// strict tells whether findings about portability count.
func (c *sanitizeCommand) strict() bool { return c.Strict || len(c.Files) == 0 }

// replay is the command that does the same again.
func (c *sanitizeCommand) replay() string {
	words := []string{"mlxgrad", "sanitize", fmt.Sprintf("--seed=%d", c.Seed), fmt.Sprintf("--schedules=%d", c.Schedules)}
	if c.Strict {
		words = append(words, "--strict")
	}
	if c.Timeout != usualTimeout {
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

// shellQuote writes a word as shells take it.
func shellQuote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// printer writes text and remembers the first error, so that a page of output is checked once.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) print(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text)
	}
}

// message is an error's text on its own.
func message(err error) string {
	if errors.Is(err, customkernels.ErrNoCompiler) {
		return err.Error() + "; run \"mlxgrad doctor\" for what to do"
	}
	return err.Error()
}
