package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/compare/suite"
	"github.com/mlxgrad/mlxgrad/internal/cli"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// parityCommand is "mlxgrad parity".
type parityCommand struct {
	Full   bool
	Rows   bool
	List   bool
	Op     []string
	DType  []string
	Case   string
	JSON   string
	Repeat int

	pattern *regexp.Regexp
}

// newParity returns "mlxgrad parity". Its help lists the operations if names is set; see newRoot.
func newParity(names bool) *cobra.Command {
	var c parityCommand
	command := &cobra.Command{
		Use:   "parity",
		Short: "Compare our gradients with MLX's and with a float64 oracle",
		Long: `Compares our gradients with MLX's and with a float64 oracle. Without --full or --case the command
runs a sample of the cases, which reaches every operation, dtype, kernel and option, and prints a
summary. Mean ratios are judged in float16 and bfloat16 if all cases of an operation were run.`,
		Example: `  mlxgrad parity
  mlxgrad parity --op softmax,attention --dtype float16 --rows
  mlxgrad parity --full --json parity.json
  mlxgrad parity --list --op softmax --case strided`,
		Args: cli.NoArgs,
	}
	f := command.Flags()
	f.BoolVar(&c.Full, "full", false, "run every case, not a sample")
	f.BoolVar(&c.Rows, "rows", false, "print the table of every row")
	f.BoolVar(&c.List, "list", false, "print the selected cases and count their rows, and run none")
	var ops []string
	if names {
		ops = opNames()
	}
	cli.List(command, &c.Op, "op", "only these operations", ops)
	cli.List(command, &c.DType, "dtype", "only these dtypes", dtypeNames())
	f.StringVar(&c.Case, "case", "", "run every case whose name matches this `REGEXP`, such as '37x129|strided'")
	f.StringVar(&c.JSON, "json", "", "also write the report as JSON to `FILE`")
	f.IntVar(&c.Repeat, "repeat", 1, "compute each gradient `N` times and require the same bits each time")
	return cli.Verb(command, c.validate, c.run)
}

// opNames lists the operations.
func opNames() []string {
	var names []string
	for _, op := range suite.Ops() {
		names = append(names, op.Name)
	}
	return names
}

// dtypeNames lists the dtypes of --dtype.
func dtypeNames() []string {
	var names []string
	for _, dtype := range compare.DTypes() {
		names = append(names, dtype.String())
	}
	return names
}

// validate checks the flags.
func (c *parityCommand) validate([]string) error {
	if c.Repeat < 1 {
		return fmt.Errorf("--repeat is %d; it must be at least 1", c.Repeat)
	}
	if c.List && c.JSON != "" {
		return errors.New("--json is a report of cases that ran; --list runs none")
	}
	var err error
	if c.pattern, err = cli.Pattern("--case", c.Case); err != nil {
		return err
	}
	return cli.CheckOutput("--json", c.JSON)
}

// run compares the gradients and writes the report as text and to the JSON file.
func (c *parityCommand) run(s cli.Streams) error {
	if err := checkMLX(); err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal()
	defer stop()

	ops, dtypes := c.ops(), chosenDTypes(c.DType)
	if c.List {
		return list(s.Out, ops, dtypes)
	}
	out := s.Text(c.JSON)
	defer out.Status.End()
	progress := &parityProgress{status: out.Status, allRows: compare.CountRows(ops, dtypes)}
	start := time.Now()
	compare.CompileKernels(ctx, ops, dtypes, progress.compiled)
	compiling := time.Since(start)
	r := compare.Run(ctx, ops, compare.Options{DTypes: dtypes, Repeat: c.Repeat, Done: progress.judged})
	r.Sample, r.Kernels, r.CompileSeconds = c.sample(), progress.done, compiling.Seconds()

	err := s.WriteFile(c.JSON, r.Encode)
	// The results of minutes of work are printed even if writing the file failed.
	if tableErr := r.WriteTable(out, report.TableOptions{Rows: c.Rows}); tableErr != nil {
		err = errors.Join(err, fmt.Errorf("printing the report: %w", tableErr))
	}
	switch {
	case err != nil:
		return err
	case r.Incomplete:
		return cli.ErrInterrupted
	case !r.Succeeded():
		return cli.ErrFailed
	}
	return nil
}

// list prints the operation, name and dtypes of each case, separated by tabs, and the number of all rows.
func list(out io.Writer, ops []compare.Op, dtypes []mlxc.DType) error {
	b := bufio.NewWriter(out)
	cases, rows := 0, 0
	for _, op := range ops {
		for _, c := range op.Cases {
			var names []string
			for _, dtype := range dtypes {
				if n := compare.CountRows([]compare.Op{{Name: op.Name, Cases: []compare.Case{c}}}, []mlxc.DType{dtype}); n > 0 {
					names, rows = append(names, dtype.String()), rows+n
				}
			}
			if len(names) > 0 {
				cases++
				fmt.Fprintf(b, "%s\t%s\t%s\n", op.Name, c.Name, strings.Join(names, ","))
			}
		}
	}
	fmt.Fprintf(b, "%d rows of %d cases\n", rows, cases)
	return b.Flush()
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
