package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/compare/bench"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/compare/suite"
	"github.com/mlxgrad/mlxgrad/internal/cli"
	"github.com/mlxgrad/mlxgrad/internal/outfile"
	"github.com/mlxgrad/mlxgrad/internal/statusline"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// benchCommand is "mlxgrad bench".
type benchCommand struct {
	Op     []string
	DType  []string
	Shape  string
	Pass   []string
	Repeat int
	JSON   string

	pattern *regexp.Regexp
}

// newBench returns "mlxgrad bench". Its help lists the operations if names is set; see newRoot.
func newBench(names bool) *cobra.Command {
	var c benchCommand
	command := &cobra.Command{
		Use:   "bench",
		Short: "Time our gradients and MLX's built-in ones",
		Long:  benchHelp,
		Example: `  mlxgrad bench --op rmsnorm --dtype float32
  mlxgrad bench --shape '^8192x4096$|causal' --repeat 20
  mlxgrad bench --json bench.json && mlxgrad report bench.json --format html -o bench.html`,
		Args: cli.NoArgs,
	}
	f := command.Flags()
	var ops []string
	if names {
		ops = benchOpNames()
	}
	cli.List(command, &c.Op, "op", "only these operations", ops)
	cli.List(command, &c.DType, "dtype", "only these dtypes", dtypeNames())
	f.StringVar(&c.Shape, "shape", "", "only cases whose names match this `REGEXP`, such as '^8192x4096$|causal'")
	cli.List(command, &c.Pass, "pass", "the timed pass, instead of the operation's default",
		[]string{string(report.Backward), string(report.Step)})
	f.IntVar(&c.Repeat, "repeat", 9, "measured repetitions `N` of each side")
	f.StringVar(&c.JSON, "json", "", "also write the report as JSON to `FILE`; mlxgrad report renders it in other formats")
	return cli.Verb(command, c.validate, c.run)
}

const benchHelp = `Times our gradients and MLX's built-in gradients on the default device, in turns in one run.
Inputs and cotangents are random, contiguous and evaluated in advance; the cotangent of a loss is
1. All gradients are computed. "backward" times the gradients after the outputs, "step" the
outputs and gradients. A scalar loss computes its gradient in the forward pass, so "backward"
alone has little to do.

In float16 and bfloat16, the cotangent of the loss of linear-cross-entropy is 2^15, a loss scale
as in training. For a cotangent of 1, most elements of MLX's gradient of the logits would be 0 in
float16.

A repetition evaluates several copies in about 10 ms without waiting between them: up to 64 on a
CPU, up to 16 on a GPU. The sets of inputs together exceed the caches. Other work keeps a GPU busy
until the host has submitted all copies, so the time is the GPU's own. If that is not possible for
one side, both are compared by the time from the submission to an idle device, and the quotient
has a star. The files also have these times, and the mean time in which the host builds a graph, of
at least 16 graphs in a repetition unless these take more than 10 ms.

The column "limit" is our time divided by the least time for the same work. On a CPU, two kernels
measure its rates before the first row, with all threads: the bandwidth of adding arrays in memory
(two reads and one write), and the float32 multiply-adds in registers. Rows with TFLOP/s are
compared with the multiply-adds. On a GPU, the least time is the time in which MLX adds two arrays,
scaled to the same number of bytes.`

// benchOpNames lists the timed operations.
func benchOpNames() []string {
	var names []string
	for _, op := range suite.BenchOps(mlxc.CPU) {
		names = append(names, op.Name)
	}
	return names
}

// validate checks the flags.
func (c *benchCommand) validate([]string) error {
	if c.Repeat < 1 {
		return fmt.Errorf("--repeat is %d; it must be at least 1", c.Repeat)
	}
	var err error
	if c.pattern, err = cli.Pattern("--shape", c.Shape); err != nil {
		return err
	}
	return cli.CheckOutput("--json", c.JSON)
}

// run times the gradients and writes the report as text and to the JSON file.
func (c *benchCommand) run(s cli.Streams) error {
	if err := checkMLX(); err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal()
	defer stop()
	out := s.Text(c.JSON)
	defer out.Status.End()
	out.Status.Set("measuring the first row")

	var passes []report.Pass
	for _, pass := range c.Pass {
		passes = append(passes, report.Pass(pass))
	}
	r := bench.Run(ctx, c.ops(), bench.Options{
		DTypes: chosenDTypes(c.DType), Passes: passes, Shape: c.pattern, Repeat: c.Repeat,
		Done: func(r *report.Bench, all int) { c.measured(out.Status, r, all) },
	})
	err := s.WriteFile(c.JSON, r.Encode)
	if tableErr := r.WriteTable(out); tableErr != nil {
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

// measured writes the rows measured so far to a JSON file that can be replaced, so that nothing is lost if the process
// ends, and shows the progress. An error of the file is reported with the complete report.
func (c *benchCommand) measured(status *statusline.Line, r *report.Bench, all int) {
	if c.JSON != "" && c.JSON != cli.StandardOutput && outfile.Replaceable(c.JSON) {
		_ = outfile.Write(c.JSON, r.Encode)
	}
	status.Set("%d of %d rows; %s", len(r.Rows), all, r.Rows[len(r.Rows)-1].Line())
}

func (c *benchCommand) ops() []bench.Op {
	return slices.DeleteFunc(suite.BenchOps(mlxc.CurrentDevice()), func(op bench.Op) bool {
		return len(c.Op) > 0 && !slices.Contains(c.Op, op.Name)
	})
}
