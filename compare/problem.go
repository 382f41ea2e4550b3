package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare/internal/accuracy"
	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// problem is a case in one dtype with its operands and true results.
type problem struct {
	c       Case
	dtype   mlxc.DType
	targets []target
	draws   []operands
	truth   [][]float64 // of each target, for all draws
}

// pose makes the operands of a case and computes the true results. After an error the problem has only its targets.
func pose(op string, c Case, dtype mlxc.DType) (problem, error) {
	p := problem{c: c, dtype: dtype, targets: c.targets(dtype)}
	var err error
	if p.draws, err = makeDraws(op, c, dtype); err != nil {
		return p, fmt.Errorf("making the inputs failed: %w", err)
	}
	if p.truth, err = c.truth(p.draws); err != nil {
		return p, fmt.Errorf("the oracle failed: %w", err)
	}
	return p, nil
}

// inRange reports whether the true results can be compared in the dtype: their elements are finite, at least half of a
// gradient is defined, and the largest true value is a normal number or 0. It is true if an input has NaN or infinity.
func (p problem) inRange() bool {
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	for _, data := range p.draws {
		for _, x := range data.inputs {
			for _, v := range x.exact.Data {
				if !finite(v) {
					return true
				}
			}
		}
	}
	for i, t := range p.targets {
		if !t.dtype.IsFloating() {
			continue
		}
		largest, undefined := 0.0, 0
		for _, v := range p.truth[i] {
			if math.IsNaN(v) {
				undefined++
				continue
			}
			largest = max(largest, math.Abs(v))
		}
		allowed := 0
		if t.grad && p.c.byDifferences() {
			allowed = len(p.truth[i]) / 2
		}
		least, most := arrays.Normal(t.dtype)
		if undefined > allowed || largest > most || largest != 0 && largest < least {
			return false
		}
	}
	return true
}

// rows returns a row without results for each target.
func (p problem) rows(op string) []report.Row {
	nan := report.Number(math.NaN())
	rows := make([]report.Row, len(p.targets))
	for i, t := range p.targets {
		rows[i] = report.Row{
			Op: op, Name: p.c.Name, DType: p.dtype.String(), Shape: p.c.Inputs[0].Shape,
			Layout: string(p.c.Inputs[0].layout()), Output: t.name, OutputDType: t.dtype.String(),
			MaxErr: nan, MeanErr: nan, MLXMaxErr: nan, MLXMeanErr: nan, Floor: nan, Ratio: nan,
		}
	}
	return rows
}

// solve computes our results of each target, for all draws, in memory that probably holds NaN (see poison). The first
// call must precede every other implementation, which leaves right results in freed memory: an element that no thread
// writes could hold one of them.
func (p problem) solve() ([][]float64, error) {
	poison(p.targets)
	ours, err := gradients(p.c.Ours, p.c, p.draws, p.dtype)
	if err != nil {
		return nil, fmt.Errorf("our gradient failed: %w", err)
	}
	p.c.ignoreUndefined(ours, p.truth)
	return ours, nil
}

// judge judges our results and completes their rows.
func (p problem) judge(rows []report.Row, ours [][]float64) {
	p.judgeBy(peersOf(p.c, p.draws, p.dtype, p.truth), rows, ours)
}

// judgeAtRandomInputs judges as judge does, but allows the errors of float32 arithmetic even if MLX's are smaller.
func (p problem) judgeAtRandomInputs(rows []report.Row, ours [][]float64) {
	p.judgeBy(peersWithRounding(p.c, p.draws, p.dtype, p.truth), rows, ours)
}

func (p problem) judgeBy(peers []peer, rows []report.Row, ours [][]float64) {
	for i, t := range p.targets {
		rows[i].Draws = len(p.draws)
		judgeRow(&rows[i], t, p.c.spacing(t.dtype), ours[i], p.truth[i], peers[i])
	}
}

// judgeRow sets the errors and the verdict of a row, and the message if it fails.
func judgeRow(row *report.Row, t target, spacing float64, ours, truth []float64, p peer) {
	errs := accuracy.Measure(ours, truth)
	bound := accuracy.Allow(spacing, truth, p.reference)
	row.MaxErr, row.MeanErr = report.Number(errs.Max), report.Number(errs.Mean)
	row.MLXMaxErr, row.MLXMeanErr = report.Number(p.errors.Max), report.Number(p.errors.Mean)
	row.Floor = report.Number(bound.Floor)
	if p.verdict == report.MLXValid {
		row.Ratio = report.Number(accuracy.Ratio(errs, p.errors, bound.Floor))
	}
	row.MLX, row.MLXMessage = p.verdict, p.message
	row.Pass = bound.Accepts(errs)
	if row.Draws == 1 {
		row.Message = accuracy.Explain(ours, truth, t.shape, bound)
	} else if !row.Pass {
		row.Message = accuracy.Explain(ours, truth, slices.Concat([]int{row.Draws}, t.shape), bound) +
			fmt.Sprintf("\n(%d draws of random inputs; the first index is the draw)", row.Draws)
	}
}
