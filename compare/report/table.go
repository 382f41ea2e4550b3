package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// TableOptions holds the options of [Report.WriteTable].
type TableOptions struct {
	Rows bool // print a table of all rows for each operation and every fault of MLX's gradients
}

// WriteTable writes the report as text: versions, a summary with a line for each operation, failures, and the counts in
// the last line. Lines have at most 120 columns if the longest names of a case and of a result together are shorter
// than 46 columns.
func (r *Report) WriteTable(w io.Writer, opt TableOptions) error {
	out := &printer{w: w}
	out.printf("%s executor on %s, MLX %s, mlx-c %s\n", r.Executor, r.Device, r.MLX, r.MLXC)
	out.tf32(r.TF32)
	if r.Sample {
		out.printf("A sample of the suite: mean ratios are not judged; --full runs every case\n")
	}
	if opt.Rows {
		for _, group := range byOp(r.Rows) {
			out.printf("\n%s: largest and mean error against the float64 oracle, ours and MLX's\n", group[0].Op)
			out.table(group)
		}
		out.invalidCases(r.Rows)
	}
	out.summary(r)
	if !opt.Rows {
		out.invalidCount(r.Rows)
	}
	out.explain(r.Rows)
	out.failedSuites(r.Suites)
	out.printf("\n")
	if r.Incomplete {
		out.printf("interrupted: some cases were not run\n")
	}
	if len(r.Rows) == 0 {
		out.printf("nothing ran\n")
	}
	if r.Kernels > 0 {
		out.printf("%d kernels compiled or loaded in %.1f s\n", r.Kernels, r.CompileSeconds)
	}
	out.printf("%d passed, %d failed\n", r.Passed, r.Failed)
	return out.err
}

// printer writes text and remembers the first error, so that callers check once.
type printer struct {
	w   io.Writer
	err error
}

// printf prints without control characters, which names and messages of a file may contain and a terminal obeys.
func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, strings.Map(func(c rune) rune {
			if unicode.IsControl(c) && c != '\n' && c != '\t' {
				return -1
			}
			return c
		}, fmt.Sprintf(format, args...)))
	}
}

// tf32 prints the setting of TF32 on devices that have it.
func (p *printer) tf32(onOff string) {
	if onOff != "" {
		p.printf("Float32 matrices are multiplied with TF32 %s (MLX_ENABLE_TF32)\n", onOff)
	}
}

func (p *printer) table(cases []Row) {
	header := []string{"case", "dtype", "grad", "max", "MLX max", "mean", "MLX mean", "floor", "ratio", "", "MLX"}
	var rows [][]string
	for _, c := range cases {
		rows = append(rows, cells(c))
	}
	p.columns("lllrrrrrrll", header, rows)
}

// columns prints a header and rows in aligned columns (see [Columns]).
func (p *printer) columns(align string, header []string, rows [][]string) {
	if p.err != nil {
		return
	}
	var text string
	if text, p.err = Columns(align, header, rows); p.err == nil {
		p.printf("%s", text)
	}
}

// cells returns the cells of a row.
func cells(c Row) []string {
	verdict := "ok"
	if !c.Pass {
		verdict = "FAIL"
	}
	mlx := string(c.MLX)
	if c.MLX == MLXValid {
		mlx = "" // nearly always valid; only exceptions are shown
	}
	ratio := short(c.Ratio)
	if r := float64(c.Ratio); r >= 0.01 && r < 100 {
		ratio = strconv.FormatFloat(r, 'f', 2, 64)
	}
	return []string{
		c.Name, c.DType, c.Output, short(c.MaxErr), short(c.MLXMaxErr), short(c.MeanErr), short(c.MLXMeanErr),
		short(c.Floor), ratio, verdict, mlx,
	}
}

// short writes a number in at most eight columns.
func short(n Number) string {
	switch v := float64(n); {
	case math.IsNaN(v):
		return "-"
	case math.IsInf(v, 0):
		return "inf"
	case v == 0:
		return "0"
	default:
		return strconv.FormatFloat(v, 'e', 1, 64)
	}
}

// maxExplained is the largest number of failures that are printed with their messages. If everything fails, the first
// ones show the reason.
const maxExplained = 20

// explain prints why rows failed.
func (p *printer) explain(cases []Row) {
	groups := sameMessage(failures(cases), func(c Row) string { return c.Message })
	for n, group := range groups {
		if n == maxExplained {
			left := 0
			for _, g := range groups[n:] {
				left += len(g)
			}
			p.printf("\n... and %d more failures, each with its message in the JSON report\n", left)
			break
		}
		p.printf("\nFAIL %s\n%s\n", heading(group), indent(group[0].Message))
	}
}

// invalidCases prints the faults of MLX's gradients.
func (p *printer) invalidCases(cases []Row) {
	said := false
	for _, group := range sameMessage(cases, func(c Row) string { return c.MLXMessage }) {
		c := group[0]
		if c.MLXMessage == "" {
			continue
		}
		if !said {
			p.printf("\nMLX's gradient is not valid in these rows:\n")
			said = true
		}
		p.printf("  %s: %s: %s\n", heading(group), c.MLX, strings.ReplaceAll(c.MLXMessage, "\n", "; "))
	}
}

// invalidCount prints the number of rows in which MLX's gradient is not valid.
func (p *printer) invalidCount(cases []Row) {
	n := 0
	for _, c := range cases {
		if c.MLXMessage != "" {
			n++
		}
	}
	if n > 0 {
		p.printf("rows without a valid gradient of MLX: %d (--rows shows the reasons)\n", n)
	}
}

// sameMessage groups neighboring rows of one case and dtype that have the same message.
func sameMessage(cases []Row, message func(Row) string) [][]Row {
	var groups [][]Row
	for i, c := range cases {
		if i > 0 {
			last := cases[i-1]
			if c.Op == last.Op && c.Name == last.Name && c.DType == last.DType && message(c) == message(last) {
				groups[len(groups)-1] = append(groups[len(groups)-1], c)
				continue
			}
		}
		groups = append(groups, []Row{c})
	}
	return groups
}

// heading names the rows of a group.
func heading(group []Row) string {
	var outputs []string
	for _, c := range group {
		outputs = append(outputs, c.Output)
	}
	return fmt.Sprintf("%s %s %s %s", group[0].Op, group[0].Name, group[0].DType, strings.Join(outputs, " "))
}

// failedSuites prints the operations for which MLX's gradient is more accurate on average.
func (p *printer) failedSuites(suites []Suite) {
	for _, s := range suites {
		if !s.Pass {
			p.printf("\nFAIL %s %s\n  %s\n", s.Op, s.DType, s.verdict())
		}
	}
}

// verdict says why a suite failed.
func (s Suite) verdict() string {
	return fmt.Sprintf("the mean ratio over %d outputs is %.4f; it must be below %v", s.Outputs, float64(s.Ratio), MaxMeanRatio)
}

// byOp groups neighboring rows by operation.
func byOp(cases []Row) [][]Row {
	var groups [][]Row
	for i, c := range cases {
		if i == 0 || c.Op != cases[i-1].Op {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], c)
	}
	return groups
}

func failures(cases []Row) []Row {
	var out []Row
	for _, c := range cases {
		if !c.Pass {
			out = append(out, c)
		}
	}
	return out
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
