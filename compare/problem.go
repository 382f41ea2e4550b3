package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare/internal/accuracy"
	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
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

// rangeError returns an error if the true results cannot be compared in the dtype. It is errOutOfRange unless their
// elements are finite and the largest is a normal number or 0, and errUndefined if finite differences find no gradient
// for most of the sampled elements. If an input has NaN or infinity, it returns nil.
func (p problem) rangeError() error {
	for _, data := range p.draws {
		if !allFinite(tensors(data.inputs)) {
			return nil
		}
	}
	var mostUndefined error
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
		least, most := arrays.Normal(t.dtype)
		sampled := t.grad && p.c.byDifferences()
		if undefined > 0 && !sampled || largest > most || largest != 0 && largest < least {
			return errOutOfRange
		}
		if compared := min(oracle.Size(t.shape), p.c.sampled()) * len(p.draws); 2*(len(p.truth[i])-undefined) < compared {
			mostUndefined = errUndefined
		}
	}
	return mostUndefined
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
	return ours, nil
}

// judge judges our results and completes their rows.
func (p problem) judge(rows []report.Row, ours [][]float64) {
	p.judgeBy(peersOf(p.c, p.draws, p.dtype, p.truth), rows, ours)
}

// signPatterns is the number of patterns of signs with which rounding errors are estimated. With one pattern the errors
// of few elements may cancel.
const signPatterns = 8

// judgeAtRandomInputs judges as judge does, but allows the errors of float32 arithmetic even if MLX's are smaller, since
// over few elements MLX's gradient can be exact by chance. It allows the largest of several estimates, and makes them
// only until ours passes.
func (p problem) judgeAtRandomInputs(ours [][]float64) (rows []report.Row) {
	peers := atRandomInputs(p.c, p.draws, p.dtype, p.truth)
	passes := func() bool {
		rows = p.rows("")
		p.judgeBy(peers, rows, ours)
		return !slices.ContainsFunc(rows, func(row report.Row) bool { return !row.Pass })
	}
	if passes() {
		return rows
	}
	if p.c.Forward == nil && p.c.UnsafeReason() == "" {
		raise(peers, composedInFloat32(p.c, p.draws, p.truth))
	}
	for pattern := range signPatterns {
		raise(peers, afterRounding(p.c, p.draws, p.dtype, p.truth, pattern))
		if passes() {
			break
		}
	}
	return rows
}

// compared returns the number of elements that are compared: those with a true value.
func (p problem) compared() int {
	n := 0
	for _, values := range p.truth {
		for _, v := range values {
			if !math.IsNaN(v) {
				n++
			}
		}
	}
	return n
}

// notFinite returns the positions in a target of elements that are not finite, where finite differences found no gradient
// and all inputs and outputs of the draw are finite.
func (p problem) notFinite(i int, ours []float64) (at []int) {
	if !p.targets[i].grad || !p.c.byDifferences() {
		return nil
	}
	size := oracle.Size(p.targets[i].shape)
	for d, data := range p.draws {
		var list []int
		for j := d * size; j < (d+1)*size; j++ {
			if math.IsNaN(p.truth[i][j]) && !finite(ours[j]) {
				list = append(list, j)
			}
		}
		in := tensors(data.inputs)
		if len(list) > 0 && allFinite(in) && allFinite(p.c.Forward(in)) {
			at = append(at, list...)
		}
	}
	return at
}

func allFinite(list []oracle.Tensor) bool {
	return !slices.ContainsFunc(list, func(t oracle.Tensor) bool {
		return slices.ContainsFunc(t.Data, func(v float64) bool { return !finite(v) })
	})
}

func (p problem) judgeBy(peers []peer, rows []report.Row, ours [][]float64) {
	ours = p.c.ignoreUndefined(ours, p.truth)
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
