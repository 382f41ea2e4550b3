package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mlxgrad/mlxgrad/compare/bench"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/compare/suite"
	"github.com/mlxgrad/mlxgrad/internal/metalsan"
	"github.com/mlxgrad/mlxgrad/internal/outfile"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// benchCommand is "mlxgrad bench".
type benchCommand struct {
	Op        []string      `help:"Only these operations. One of: ${enum}." enum:"${benchOps}" placeholder:"OP"`
	DType     []string      `name:"dtype" help:"Only these dtypes. One of: ${enum}." enum:"float32,float16,bfloat16" placeholder:"DTYPE"`
	Shape     string        `help:"Only cases whose names match this regular expression, such as '^8192x4096$|causal'." placeholder:"REGEXP"`
	Pass      []report.Pass `help:"The timed pass, instead of the operation's default. One of: ${enum}." enum:"backward,step" placeholder:"PASS"`
	Repeat    int           `help:"Measured repetitions of each side (default: ${default})." default:"9" placeholder:"N"`
	JSON      string        `name:"json" help:"Also write the report as JSON to this file." placeholder:"FILE"`
	CSV       string        `name:"csv" help:"Also write it as CSV, a line for each side." placeholder:"FILE"`
	Benchstat string        `help:"Also write each repetition as a line for benchstat." placeholder:"FILE"`
	Plot      string        `help:"Also draw the ratios over size as PNG." placeholder:"FILE"`

	pattern *regexp.Regexp
}

// Help returns the text of --help after the flags.
func (*benchCommand) Help() string {
	return `Times our gradients and MLX's built-in gradients on the default device, in turns in one run. Inputs and cotangents are
random, contiguous and evaluated in advance; the cotangent of a loss is 1. All gradients are computed. "backward" times
the gradients after the outputs, "step" the outputs and gradients. A scalar loss computes its gradient in the forward
pass, so "backward" alone has little to do.

A repetition evaluates up to 64 copies in about 10 ms without waiting between them. The sets of inputs together exceed
the caches. Other work keeps a GPU busy until the host has submitted all copies, so the time is the GPU's own. The files
also have the time from the submission to an idle device, and the time in which the host builds the graphs.

The limit is MLX's addition of two arrays with the size of the largest moved array: two reads and one write.`
}

// benchOpNames lists the timed operations.
func benchOpNames() string {
	var names []string
	for _, op := range suite.BenchOps(mlxc.CPU) {
		names = append(names, op.Name)
	}
	return strings.Join(names, ",")
}

// Validate checks the flags.
func (c *benchCommand) Validate() error {
	if c.Repeat < 1 {
		return fmt.Errorf("--repeat must be at least 1, not %d", c.Repeat)
	}
	var err error
	if c.pattern, err = metalsan.Pattern("--shape", c.Shape); err != nil {
		return err
	}
	for _, file := range []struct{ flag, path string }{
		{"--json", c.JSON}, {"--csv", c.CSV}, {"--benchstat", c.Benchstat}, {"--plot", c.Plot},
	} {
		if err := metalsan.CheckOutput(file.flag, file.path); err != nil {
			return err
		}
	}
	return nil
}

// Run times the gradients and writes the report to w and to the files.
func (c *benchCommand) Run(w io.Writer, k *kong.Context) error {
	if err := checkMLX(); err != nil {
		return err
	}
	ctx, stop := metalsan.UntilSignal()
	defer stop()

	r := bench.Run(ctx, c.ops(), bench.Options{
		DTypes: chosenDTypes(c.DType), Passes: c.Pass, Shape: c.pattern, Repeat: c.Repeat,
		// A line for each row shows progress, since a run takes minutes.
		Done: func(r *report.Bench) {
			c.keep(r)
			fmt.Fprintln(k.Stderr, r.Rows[len(r.Rows)-1].Line())
		},
	})
	err := c.writeFiles(r)
	if tableErr := r.WriteTable(w); tableErr != nil {
		err = errors.Join(err, fmt.Errorf("printing the report: %w", tableErr))
	}
	switch {
	case err != nil:
		return err
	case r.Incomplete:
		return metalsan.ErrInterrupted
	case !r.Succeeded():
		return metalsan.ErrFailed
	}
	return nil
}

// writeFiles writes all requested files and continues after a failure.
func (c *benchCommand) writeFiles(r *report.Bench) (err error) {
	for _, file := range []struct {
		path  string
		write func(io.Writer) error
	}{{c.JSON, r.Encode}, {c.CSV, r.WriteCSV}, {c.Benchstat, r.WriteBenchstat}, {c.Plot, r.WritePlot}} {
		if file.path != "" {
			err = errors.Join(err, outfile.Write(file.path, file.write))
		}
	}
	return err
}

// keep writes the rows measured so far to the files that can be replaced, so that nothing is lost if the process ends.
// Errors are reported with the complete files.
func (c *benchCommand) keep(r *report.Bench) {
	for path, write := range map[string]func(io.Writer) error{c.JSON: r.Encode, c.CSV: r.WriteCSV} {
		if path != "" && outfile.Replaceable(path) {
			_ = outfile.Write(path, write)
		}
	}
}

func (c *benchCommand) ops() []bench.Op {
	return slices.DeleteFunc(suite.BenchOps(mlxc.CurrentDevice()), func(op bench.Op) bool {
		return len(c.Op) > 0 && !slices.Contains(c.Op, op.Name)
	})
}
