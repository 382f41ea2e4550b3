package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// summary prints a line for each operation, with columns for each dtype.
func (p *printer) summary(r *Report) {
	if len(r.Suites) == 0 {
		return
	}
	var ops, dtypes []string
	width := 0
	for _, s := range r.Suites {
		if !slices.Contains(ops, s.Op) {
			ops = append(ops, s.Op)
			width = max(width, len(s.Op))
		}
		if !slices.Contains(dtypes, s.DType) {
			dtypes = append(dtypes, s.DType)
		}
	}
	p.printf("\nRatio of errors, (ours + floor) / (MLX + floor): the worst and the geometric mean; time in seconds\n")
	first, second := strings.Repeat(" ", width), strings.Repeat(" ", width)
	for _, dtype := range dtypes {
		first += fmt.Sprintf("   %-*s", cellWidth, dtype)
		second += fmt.Sprintf("   %4s %6s %5s %5s %5s", "rows", "passed", "worst", "mean", "time")
	}
	p.printf("%s\n%s\n", strings.TrimRight(first, " "), second)
	for _, op := range ops {
		line := fmt.Sprintf("%-*s", width, op)
		for _, dtype := range dtypes {
			line += "   " + r.cell(op, dtype)
		}
		p.printf("%s\n", strings.TrimRight(line, " "))
	}
}

const cellWidth = 29

// cell returns the figures of an operation in a dtype, cellWidth columns wide.
func (r *Report) cell(op, dtype string) string {
	i := slices.IndexFunc(r.Suites, func(s Suite) bool { return s.Op == op && s.DType == dtype })
	if i < 0 {
		return strings.Repeat(" ", cellWidth)
	}
	s, c := r.Suites[i], r.count(op, dtype)
	return fmt.Sprintf("%4d %6d %5s %5s %5s", c.rows, c.passed, brief(c.worst, 2), brief(float64(s.Ratio), 3), brief(s.Seconds, 1))
}

// counts are figures of the rows of an operation in a dtype.
type counts struct {
	rows, passed int
	worst        float64 // largest ratio; NaN if there is none
}

func (r *Report) count(op, dtype string) counts {
	n := counts{worst: math.NaN()}
	for _, c := range r.Rows {
		if c.Op != op || c.DType != dtype {
			continue
		}
		n.rows++
		if c.Pass {
			n.passed++
		}
		if ratio := float64(c.Ratio); !(ratio <= n.worst) && !math.IsNaN(ratio) {
			n.worst = ratio
		}
	}
	return n
}

// brief writes a non-negative number in at most five columns, with the given number of decimals if they fit.
func brief(v float64, decimals int) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case math.IsInf(v, 0):
		return "inf"
	case v >= 1e5:
		return strconv.FormatFloat(v, 'e', 0, 64)
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if len(text) > 5 {
		text = strconv.FormatFloat(v, 'f', 0, 64)
	}
	return text
}
