package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mlxgrad/mlxgrad/compare/internal/accuracy"
	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Options holds the options of [Run]. The zero value runs every case once in every dtype.
type Options struct {
	DTypes []mlxc.DType // [DTypes] if nil
	// Repeat is the number of times that each of our gradients is computed. All results must have the same bits. Values
	// below 2 compute it once.
	Repeat int
	// Done, if not nil, is called with the rows of each case in one dtype, in the goroutine of Run.
	Done func(rows []report.Row)
}

// Run compares the gradients of ops on the current device. It continues after a failure and records it in the report; a
// case without Inputs, Ours or a Reference is a failure, and so is one with elements whose Ours launches no kernel of
// package customkernels. If ctx ends, Run stops after the current case and the report is incomplete. No other goroutine
// may launch kernels at the same time, because Run counts all launches.
func Run(ctx context.Context, ops []Op, opt Options) *report.Report {
	out := &report.Report{
		MLX:      mlxc.Version(),
		MLXC:     mlxc.CVersion(),
		Device:   mlxc.CurrentDevice().String(),
		Executor: customkernels.ExecutorName(),
		TF32:     arrays.TF32(),
	}
	dtypes := opt.DTypes
	if dtypes == nil {
		dtypes = DTypes()
	}
	for _, op := range ops {
		first := len(out.Rows)
		seconds := map[string]float64{}
		for _, c := range op.Cases {
			invalid := len(c.DTypes) == 0 && c.DTypes != nil || checkDTypes(c.DTypes) != nil // runCase reports it
			for _, dtype := range dtypes {
				if !c.runsIn(dtype) && !invalid {
					continue
				}
				start := time.Now()
				var rows []report.Row
				// Each case frees its arrays before the next begins.
				mlxc.WithScope(func() { rows = runCase(ctx, op.Name, c, dtype, opt.Repeat) })
				seconds[dtype.String()] += time.Since(start).Seconds()
				out.Rows = append(out.Rows, rows...)
				if opt.Done != nil && len(rows) > 0 {
					opt.Done(rows)
				}
			}
		}
		judged := suites(op.Name, dtypes, out.Rows[first:], !op.part && ctx.Err() == nil)
		for i := range judged {
			judged[i].Seconds = seconds[judged[i].DType]
		}
		out.Suites = append(out.Suites, judged...)
	}
	out.Incomplete = ctx.Err() != nil
	out.SetCounts()
	return out
}

// runCase judges one case in one dtype and returns a row for each target, or no rows if ctx has ended.
func runCase(ctx context.Context, op string, c Case, dtype mlxc.DType, repeat int) []report.Row {
	if ctx.Err() != nil {
		return nil
	}
	if err := errors.Join(c.check(), checkDTypes([]mlxc.DType{dtype})); err != nil {
		return []report.Row{{Op: op, Name: c.Name, DType: dtype.String(), Message: err.Error()}}
	}
	p, err := pose(op, c, dtype)
	rows := p.rows(op)
	if err != nil {
		return fail(rows, err)
	}
	before := customkernels.LaunchCount()
	ours, err := p.solve()
	if err != nil {
		return fail(rows, err)
	}
	launches := int(customkernels.LaunchCount()-before) / len(p.draws)
	p.judge(rows, ours)
	for i := range rows {
		rows[i].Launches = launches
	}
	if launches == 0 && !c.empty() {
		return fail(rows, errors.New("nothing ran: none of our kernels was launched"))
	}

	for run := 2; run <= repeat; run++ {
		if ctx.Err() != nil {
			return nil
		}
		again, err := p.solve()
		if err != nil {
			return fail(rows, fmt.Errorf("run %d of %d: %w", run, repeat, err))
		}
		same := true
		for i := range rows {
			if at := firstDifference(ours[i], again[i]); at >= 0 {
				same, rows[i].Pass = false, false
				rows[i].Message = fmt.Sprintf("run %d of %d differs from run 1 at element %d: %v instead of %v",
					run, repeat, at, again[i][at], ours[i][at])
			}
		}
		if !same {
			break
		}
	}
	return rows
}

// fail marks rows as failed, with err as the message.
func fail(rows []report.Row, err error) []report.Row {
	for i := range rows {
		rows[i].Pass, rows[i].Message = false, err.Error()
	}
	return rows
}

// check returns an error if a required field of the case is missing, or one that only [Gradients] reads is set.
func (c Case) check() error {
	for _, in := range c.Inputs {
		if in.Dims != nil {
			return fmt.Errorf("the input %s has Dims, which only Gradients reads; it must have Shape", in.Name)
		}
	}
	return c.checkFunctions()
}

// empty reports whether an input has no elements. Such a case may launch no kernel.
func (c Case) empty() bool {
	return slices.ContainsFunc(c.Inputs, func(in Input) bool { return oracle.Size(in.Shape) == 0 })
}

// firstDifference returns the first position at which two results have different bits, or -1.
func firstDifference(a, b []float64) int {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return i
		}
	}
	return -1
}

// suites judges the cases of an operation together, one verdict for each dtype. In float16 and bfloat16, where our
// kernels compute in float32, ours must be the more accurate on average. In float32, and for a part of the cases, the
// mean is only shown. Outputs of another dtype than the tested one are left out: a float32 loss beside MLX's float16
// loss would outweigh errors of our gradients.
func suites(op string, dtypes []mlxc.DType, rows []report.Row, whole bool) []report.Suite {
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
		s.Pass = !s.Judged || mean < report.MaxMeanRatio
		out = append(out, s)
	}
	return out
}
