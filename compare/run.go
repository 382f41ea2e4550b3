package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mlxgrad/mlxgrad/compare/internal/accuracy"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Options choose what [Run] does. The zero value runs every case once in every dtype.
type Options struct {
	DTypes []mlxc.DType // All of [DTypes] if nil.
	// Repeat is how often each of our gradients is computed. All results must be equal bit for bit;
	// up to 1 there is nothing to be equal to.
	Repeat int
	// Done, if it is not nil, is called with the rows of each case in one dtype.
	Done func(rows []report.Case)
}

// Run compares the gradients of ops on the current default device. It goes on after a failure, which
// the report holds; a case without Inputs, Forward or Ours is one. When ctx ends it stops after the current case, and the report is incomplete.
func Run(ctx context.Context, ops []Op, opt Options) *report.Report {
	out := &report.Report{
		MLX:      mlxc.Version(),
		MLXC:     mlxc.CVersion(),
		Device:   mlxc.DefaultDevice().String(),
		Executor: customkernels.ExecutorName(),
		TF32:     tf32(),
	}
	dtypes := opt.DTypes
	if dtypes == nil {
		dtypes = DTypes()
	}
	for _, op := range ops {
		first := len(out.Cases)
		seconds := map[string]float64{}
		for _, c := range op.Cases {
			for _, dtype := range dtypes {
				if !c.runsIn(dtype) {
					continue
				}
				start := time.Now()
				var rows []report.Case
				// Each case frees its arrays before the next begins.
				mlxc.WithScope(func() { rows = runCase(ctx, op.Name, c, dtype, opt.Repeat) })
				seconds[dtype.String()] += time.Since(start).Seconds()
				out.Cases = append(out.Cases, rows...)
				if opt.Done != nil && len(rows) > 0 {
					opt.Done(rows)
				}
			}
		}
		judged := suites(op.Name, dtypes, out.Cases[first:], !op.part && ctx.Err() == nil)
		for i := range judged {
			judged[i].Seconds = seconds[judged[i].DType]
		}
		out.Suites = append(out.Suites, judged...)
	}
	out.Incomplete = ctx.Err() != nil
	out.Count()
	return out
}

// runCase judges one case in one dtype, a row for each target. There are no rows if ctx ended before.
func runCase(ctx context.Context, op string, c Case, dtype mlxc.DType, repeat int) []report.Case {
	if ctx.Err() != nil {
		return nil
	}
	if err := c.check(); err != nil {
		return []report.Case{{Op: op, Name: c.Name, DType: dtype.String(), Message: err.Error()}}
	}
	targets := c.targets(dtype)
	rows := make([]report.Case, len(targets))
	nan := report.Number(math.NaN())
	for i, t := range targets {
		rows[i] = report.Case{
			Op: op, Name: c.Name, DType: dtype.String(), Shape: c.Inputs[0].Shape,
			Layout: string(c.Inputs[0].layout()), Output: t.name, OutputDType: t.dtype.String(),
			MaxErr: nan, MeanErr: nan, MLXMaxErr: nan, MLXMeanErr: nan, Floor: nan, Ratio: nan,
		}
	}
	fail := func(message string) []report.Case {
		for i := range rows {
			rows[i].Pass, rows[i].Message = false, message
		}
		return rows
	}

	draws, err := drawsFor(op, c, dtype)
	if err != nil {
		return fail("the inputs could not be made: " + err.Error())
	}
	truth, err := c.truth(draws)
	if err != nil {
		return fail("the oracle failed: " + err.Error())
	}

	// Ours runs first, into memory that holds NaN: an element that no thread writes must not inherit
	// MLX's right answer.
	poison(targets)
	before := customkernels.Launches()
	ours, err := gradients(c.Ours, c, draws, dtype)
	launches := int(customkernels.Launches()-before) / len(draws)
	if err != nil {
		return fail("our gradient failed: " + err.Error())
	}
	peers := peersOf(c, draws, dtype, truth)
	for i, t := range targets {
		rows[i].Launches, rows[i].Draws = launches, len(draws)
		judge(&rows[i], t, c.spacing(t.dtype), ours[i], truth[i], peers[i])
	}
	if launches == 0 && !c.empty() {
		return fail("nothing ran: none of our kernels was launched")
	}

	for run := 2; run <= repeat; run++ {
		if ctx.Err() != nil {
			return nil
		}
		again, err := gradients(c.Ours, c, draws, dtype)
		if err != nil {
			return fail(fmt.Sprintf("our gradient failed in run %d of %d: %v", run, repeat, err))
		}
		same := true
		for i := range targets {
			if at := firstDifference(ours[i], again[i]); at >= 0 {
				same, rows[i].Pass = false, false
				rows[i].Message = fmt.Sprintf("run %d of %d gives other bits, first at element %d: %v, before %v",
					run, repeat, at, again[i][at], ours[i][at])
			}
		}
		if !same {
			break
		}
	}
	return rows
}

// check returns an error if the case lacks what nothing can stand for.
func (c Case) check() error {
	switch {
	case len(c.Inputs) == 0:
		return errors.New("the case's Inputs is empty: a case needs an input")
	case c.Forward == nil:
		return errors.New("the case's Forward is nil: a case needs the operation in float64; only Gradient, MLX and Composed may be nil")
	case c.Ours == nil:
		return errors.New("the case's Ours is nil: a case needs our function; only Gradient, MLX and Composed may be nil")
	}
	return nil
}

// empty reports whether an input has no elements, so that there may be nothing to launch.
func (c Case) empty() bool {
	return slices.ContainsFunc(c.Inputs, func(in Input) bool { return oracle.Size(in.Shape) == 0 })
}

// judge sets the errors of a row, and whether it passes and why not.
func judge(row *report.Case, t target, spacing float64, ours, truth []float64, p peer) {
	errs := accuracy.Measure(ours, truth)
	bound := accuracy.Allow(spacing, truth, p.yardstick)
	row.MaxErr, row.MeanErr = report.Number(errs.Max), report.Number(errs.Mean)
	row.MLXMaxErr, row.MLXMeanErr = report.Number(p.errors.Max), report.Number(p.errors.Mean)
	row.Floor = report.Number(bound.Floor)
	if p.verdict == report.MLXSound {
		row.Ratio = report.Number(accuracy.Ratio(errs, p.errors, bound.Floor))
	}
	row.MLX, row.MLXMessage = p.verdict, p.message
	row.Pass = bound.Admits(errs)
	if row.Draws == 1 {
		row.Message = accuracy.Explain(ours, truth, t.shape, bound)
	} else if !row.Pass {
		row.Message = accuracy.Explain(ours, truth, slices.Concat([]int{row.Draws}, t.shape), bound) +
			fmt.Sprintf("\n(over %d draws of random inputs; indices begin with the draw)", row.Draws)
	}
}

// firstDifference returns the first position at which two results differ in any bit, or -1.
func firstDifference(a, b []float64) int {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return i
		}
	}
	return -1
}

// mostRatio is more than a suite's mean may be: 1 in two decimals. Where ours rounds what MLX rounds,
// the ratio of nearly every output is exactly 1, and luck alone is left to the others.
const mostRatio = 1.005

// suites judges an operation's cases together, one verdict a dtype. Where ours computes in f32 and
// MLX in the dtype itself, ours must be the more accurate on average; in float32, and on a part of
// the cases, the mean is for information. An output of another dtype than the one under test is left
// out: a float32 loss, beside one that MLX computes in float16, would outweigh what ours got wrong.
func suites(op string, dtypes []mlxc.DType, rows []report.Case, whole bool) []report.Suite {
	var out []report.Suite
	for _, dtype := range dtypes {
		var ratios []float64
		for _, row := range rows {
			if row.DType == dtype.String() && row.OutputDType == row.DType {
				ratios = append(ratios, float64(row.Ratio))
			}
		}
		if len(ratios) == 0 {
			continue
		}
		mean, n := accuracy.GeometricMean(ratios)
		s := report.Suite{Op: op, DType: dtype.String(), Ratio: report.Number(mean), Outputs: n}
		s.Judged = whole && n > 0 && dtype != mlxc.Float32
		s.Pass = !s.Judged || mean < mostRatio
		out = append(out, s)
	}
	return out
}
