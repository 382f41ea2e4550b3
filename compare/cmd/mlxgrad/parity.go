package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/metalsan"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// parityCommand is "mlxgrad parity".
type parityCommand struct {
	Op       []string `help:"Only these operations. One of: ${enum}." enum:"${ops}" placeholder:"OP"`
	DType    []string `name:"dtype" help:"Only these dtypes. One of: ${enum}." enum:"float32,float16,bfloat16" placeholder:"DTYPE"`
	Case     string   `help:"Only cases whose names match this regular expression, such as '37x129|strided'." placeholder:"REGEXP"`
	JSON     string   `name:"json" help:"Also write the report as JSON to this file." placeholder:"FILE"`
	Failures bool     `aliases:"failures-only" help:"List only the cases that failed."`
	Repeat   int      `help:"Compute each gradient this often, and require the same bits every time (default: ${default})." default:"1" placeholder:"N"`

	pattern *regexp.Regexp
}

// opNames lists the operations for the help text and the check of --op.
func opNames() string {
	var names []string
	for _, op := range compare.Ops() {
		names = append(names, op.Name)
	}
	return strings.Join(names, ",")
}

// Validate finds what is wrong with the flags before anything runs.
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

// Run compares, and reports on w and in the JSON file.
func (c *parityCommand) Run(w io.Writer, k *kong.Context) error {
	if err := checkMLX(); err != nil {
		return err
	}
	ctx, stop := metalsan.UntilSignal()
	defer stop()

	r := compare.Run(ctx, c.ops(), compare.Options{
		DTypes: chosenDTypes(c.DType), Case: c.pattern, Repeat: c.Repeat,
		// A line for each operation, since a run takes minutes.
		Done: func(op string, rows []report.Case) {
			done := report.Report{Cases: rows}
			done.Count()
			fmt.Fprintf(k.Stderr, "%s: %d passed, %d failed\n", op, done.Passed, done.Failed)
		},
	})
	var err error
	if c.JSON != "" {
		err = r.WriteFile(c.JSON)
	}
	// What took minutes is printed wherever else it could not be written.
	if tableErr := r.WriteTable(w, report.TableOptions{FailuresOnly: c.Failures}); tableErr != nil {
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

func (c *parityCommand) ops() []compare.Op {
	return slices.DeleteFunc(compare.Ops(), func(op compare.Op) bool {
		return len(c.Op) > 0 && !slices.Contains(c.Op, op.Name)
	})
}

// chosenDTypes are those of these names, or all if none is named.
func chosenDTypes(names []string) []mlxc.DType {
	return slices.DeleteFunc(compare.DTypes(), func(d mlxc.DType) bool {
		return len(names) > 0 && !slices.Contains(names, d.String())
	})
}
