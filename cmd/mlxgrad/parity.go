package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/compare/suite"
	"github.com/mlxgrad/mlxgrad/internal/metalsan"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// parityCommand is "mlxgrad parity".
type parityCommand struct {
	Full   bool     `help:"Run every case, not a sample."`
	Rows   bool     `help:"Print the table of every row."`
	Op     []string `help:"Only these operations. One of: ${enum}." enum:"${ops}" placeholder:"OP"`
	DType  []string `name:"dtype" help:"Only these dtypes. One of: ${enum}." enum:"float32,float16,bfloat16" placeholder:"DTYPE"`
	Case   string   `help:"Run every case whose name matches this regular expression, such as '37x129|strided'." placeholder:"REGEXP"`
	JSON   string   `name:"json" help:"Also write the report as JSON to this file." placeholder:"FILE"`
	Repeat int      `help:"Compute each gradient N times and require the same bits each time (default: ${default})." default:"1" placeholder:"N"`

	pattern *regexp.Regexp
}

// Help returns the text of --help after the flags.
func (*parityCommand) Help() string {
	return `Without --full or --case the command runs a sample of the cases, which reaches every operation, dtype, kernel and
option, and prints a summary. Mean ratios are judged in float16 and bfloat16 if all cases of an operation were run.`
}

// opNames lists the operations for the help text and the check of --op.
func opNames() string {
	var names []string
	for _, op := range suite.Ops() {
		names = append(names, op.Name)
	}
	return strings.Join(names, ",")
}

// Validate checks the flags.
func (c *parityCommand) Validate() error {
	if c.Repeat < 1 {
		return fmt.Errorf("--repeat must be at least 1, not %d", c.Repeat)
	}
	var err error
	if c.pattern, err = metalsan.Pattern("--case", c.Case); err != nil {
		return err
	}
	return metalsan.CheckOutput("--json", c.JSON)
}

// Run compares the gradients and writes the report to w and to the JSON file.
func (c *parityCommand) Run(w io.Writer, k *kong.Context) error {
	if err := checkMLX(); err != nil {
		return err
	}
	ctx, stop := metalsan.UntilSignal()
	defer stop()

	ops, dtypes := c.ops(), chosenDTypes(c.DType)
	progress := newParityProgress(k.Stderr, compare.CountRows(ops, dtypes))
	start := time.Now()
	compare.CompileKernels(ctx, ops, dtypes, progress.compiled)
	compiling := time.Since(start)
	r := compare.Run(ctx, ops, compare.Options{DTypes: dtypes, Repeat: c.Repeat, Done: progress.judged})
	progress.end()
	r.Sample, r.Kernels, r.CompileSeconds = c.sample(), progress.done, compiling.Seconds()

	var err error
	if c.JSON != "" {
		err = r.WriteFile(c.JSON)
	}
	// The results of minutes of work are printed even if writing the file failed.
	if tableErr := r.WriteTable(w, report.TableOptions{Rows: c.Rows}); tableErr != nil {
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

// sample reports whether the flags select a sample of the cases.
func (c *parityCommand) sample() bool { return !c.Full && c.pattern == nil }

func (c *parityCommand) ops() []compare.Op {
	ops := suite.Ops()
	switch {
	case c.pattern != nil:
		ops = compare.Matching(ops, c.pattern)
	case c.sample():
		ops = compare.Sample(ops)
	}
	return slices.DeleteFunc(ops, func(op compare.Op) bool {
		return len(c.Op) > 0 && !slices.Contains(c.Op, op.Name)
	})
}

// chosenDTypes returns the named dtypes, or all if no name is given.
func chosenDTypes(names []string) []mlxc.DType {
	return slices.DeleteFunc(compare.DTypes(), func(d mlxc.DType) bool {
		return len(names) > 0 && !slices.Contains(names, d.String())
	})
}
