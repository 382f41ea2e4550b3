// Package metalsan implements the command line of the sanitizer. The commands metalsan and mlxgrad sanitize share it.
package metalsan

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/cli"
)

// defaultTimeout is the default of --timeout.
const defaultTimeout = time.Minute

// Command is the command line that checks kernels. The caller sets Program and Own; the flags set the other fields.
type Command struct {
	Flags
	Strict    bool
	Schedules int
	Timeout   time.Duration // for all schedules of a launch together
	JSON      string        // file, - for standard output, or "" for none
	SARIF     string        // file, like JSON
	JUnit     string        // file, or ""
	Baseline  string        // file with known findings, or ""
	Write     string        // file for the baseline of this run, or ""
	Draft     bool          // print launch descriptions instead of checking

	Program string // shell words that start the command, for the examples and the replay line
	known   *baseline
	Own     func() []Launch // launches to check without files; nil if files are required
}

// New returns the cobra command with the given use line and short description.
func (c *Command) New(use, short string) *cobra.Command {
	command := &cobra.Command{
		Use: use, Short: short, Long: long,
		Example: strings.ReplaceAll(examples, "PROGRAM", c.Program),
	}
	c.Register(command)
	f := command.Flags()
	f.BoolVar(&c.Strict, "strict", false, "fail on portability findings too; always on for this project's kernels")
	f.IntVar(&c.Schedules, "schedules", 3, "number `N` of thread orders to try: ascending, descending, then random")
	f.DurationVar(&c.Timeout, "timeout", defaultTimeout, "time limit `TIME` for all schedules of a launch together")
	f.StringVar(&c.JSON, "json", "",
		"also write the report as JSON to `FILE`; with - it goes to standard output, and the text to standard error")
	f.StringVar(&c.SARIF, "sarif", "",
		"also write the findings as SARIF 2.1.0 to `FILE`; with - they go to standard output, and the text to standard error")
	f.StringVar(&c.JUnit, "junit", "", "also write the report as JUnit's XML to `FILE`")
	f.StringVar(&c.Baseline, "baseline", "", "accept the findings in `FILE`, which --write-baseline wrote")
	f.StringVar(&c.Write, "write-baseline", "", "write the findings to `FILE`, and accept them")
	f.BoolVar(&c.Draft, "draft", false, "print a launch description for each kernel of the files, and check nothing")
	return cli.Verb(command, c.Validate, c.Run)
}

const long = `Runs kernels on this machine's CPU under a checker. It finds bugs that a GPU hides: data races,
accesses out of bounds, reads of uninitialized values, unwritten outputs, divergent barriers and
SIMD-group functions, and launches that crash or do not end.

A comment in the shader file describes the launches of its kernels:

    // launch: scale grid=1000 threadgroup=256 T=float16
    //   with: x=float16[10,100] factor=float32:2.5 y=out:float16[10,100]

The arguments are shader files, Python files with calls of mx.fast.metal_kernel, folders and patterns.
docs/sanitize.md documents launch descriptions, and comments that accept findings.
The exit code is 0 if no finding fails the command, 1 if one does or nothing ran, 2 if the command line
is wrong, and 130 after an interruption.`

const examples = `  PROGRAM kernel.metal
  PROGRAM kernel.metal --strict --schedules 10 --json report.json
  PROGRAM shaders --case float16 --sarif report.sarif --baseline known.json
  PROGRAM model.py --junit report.xml`

// Validate returns an error if the flags are wrong.
func (c *Command) Validate(args []string) error {
	if len(args) == 0 && c.Own == nil {
		return errors.New("no shader file given; name at least one")
	}
	if c.Schedules < 1 {
		return fmt.Errorf("--schedules is %d; it must be at least 1", c.Schedules)
	}
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout is %v; it must be positive", c.Timeout)
	}
	if c.Baseline != "" && c.Write != "" {
		return errors.New("--baseline and --write-baseline exclude each other")
	}
	if err := c.Flags.Check(args); err != nil {
		return err
	}
	if c.Draft && len(args) == 0 {
		return errors.New("--draft needs a shader file")
	}
	toOutput := ""
	for _, o := range []struct{ flag, path string }{
		{"--json", c.JSON}, {"--sarif", c.SARIF}, {"--junit", c.JUnit}, {"--write-baseline", c.Write},
	} {
		if err := cli.CheckOutput(o.flag, o.path); err != nil {
			return err
		}
		if o.path == cli.StandardOutput && toOutput != "" {
			return fmt.Errorf("%s and %s cannot both be -", toOutput, o.flag)
		} else if o.path == cli.StandardOutput {
			toOutput = o.flag
		}
	}
	var err error
	if c.known, err = readBaseline(c.Baseline); err != nil {
		return fmt.Errorf("--baseline: %w", err)
	}
	return nil
}

// Run checks the launches and writes the reports. It returns cli.ErrFailed if the run fails, and cli.ErrInterrupted
// after a signal.
func (c *Command) Run(s cli.Streams) error {
	ctx, stop := cli.UntilSignal()
	defer stop()
	if c.Draft {
		return c.draft(ctx, s)
	}
	chosen := c.Launches(ctx, c.Own)
	r := newReport(c, chosen)
	r.known = func(f sanitizeFinding) bool { return c.Write != "" || c.known.knows(f) }
	out := s.Text(c.JSON, c.SARIF, c.JUnit, c.Write)
	defer out.Status.End()
	out.Status.Set("0 of %d launches checked", len(chosen.List))
	for _, f := range chosen.Failed {
		out.Print(f.String())
		if r.github {
			out.Print(annotation("error", f.File, f.Line, f.Column, "not run", f.Error))
		}
	}
	c.check(ctx, chosen.List, func(done []sanitizedLaunch) {
		out.Print(r.add(done))
		out.Status.Set("%d of %d launches checked", len(r.Launches), len(chosen.List))
	})
	r.Incomplete = ctx.Err() != nil
	r.findUnused()
	out.Print(r.summary())
	if n := c.known.gone(); n > 0 && c.Write == "" && !r.Incomplete && !r.partial {
		out.Print(fmt.Sprintf("%s: %s no longer occur; write it again with --write-baseline\n", c.Baseline, Count(n, "finding")))
	}
	if err := c.writeReports(s, r); err != nil {
		return err
	}
	switch {
	case out.Err() != nil:
		return out.Err()
	case r.Incomplete:
		return cli.ErrInterrupted
	case r.failed():
		return cli.ErrFailed
	}
	return nil
}

// writeReports writes the files that the flags name.
func (c *Command) writeReports(s cli.Streams, r *Report) error {
	if err := s.WriteJSON(c.JSON, r); err != nil {
		return err
	}
	if c.SARIF != "" {
		if err := s.WriteJSON(c.SARIF, newSARIF(r)); err != nil {
			return err
		}
	}
	if c.Write != "" {
		if err := s.WriteJSON(c.Write, newBaseline(r.groups)); err != nil {
			return err
		}
	}
	if c.JUnit == "" {
		return nil
	}
	text, err := xml.MarshalIndent(newJUnit(r), "", "  ")
	if err != nil {
		return err
	}
	return s.WriteFile(c.JUnit, func(w io.Writer) error {
		_, err := io.WriteString(w, xml.Header+string(text)+"\n")
		return err
	})
}

// check runs the launches on several goroutines. It calls done once per kernel with the results of all its launches,
// in order and on the caller's goroutine.
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
	if c.From != "" {
		words = append(words, "--launches="+shellQuote(c.From))
	}
	for _, macro := range c.Define {
		words = append(words, "--define="+shellQuote(macro))
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
