package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A page is the content of the Markdown and HTML forms.
type page struct {
	Title    string
	Verdict  string
	Good     bool     // the run succeeded
	Facts    []string // machine, versions and remarks, each a sentence or a list of words
	Plots    []plot
	Failures []note
	Legend   string // the meaning of the tables' columns
	Tables   []table
	Faults   []note // rows in which MLX has no valid gradient or timing
	// FaultsTitle is the heading of Faults.
	FaultsTitle string
}

// A note is a text about the rows that its title names.
type note struct{ Title, Text string }

// A table has a line for each row of the result, or for each suite.
type table struct {
	Title   string
	Columns []column
	Rows    [][]cell
	// Long tables are left out of Markdown, and HTML shows them on request.
	Long bool
}

// A column has a short name. Help explains it in the HTML page.
type column struct {
	Name, Help string
	Number     bool
}

// A cell has a text and, for a number, all its digits.
type cell struct {
	Text  string
	Value string
	Bad   bool // a failure
}

func words(text string) cell { return cell{Text: text} }

func count(n int) cell { return cell{Text: strconv.Itoa(n), Value: strconv.Itoa(n)} }

// figure returns a cell that shows text and sorts by v.
func figure(v float64, text string) cell { return cell{Text: text, Value: Number(v).String()} }

// page returns the report of a comparison: a summary, the failures and a table of rows for each operation.
func (r *Report) page() page {
	p := page{
		Title:   "Gradients compared with MLX's and a float64 oracle",
		Verdict: fmt.Sprintf("%d passed, %d failed", r.Passed, r.Failed),
		Good:    r.Succeeded(),
		Facts:   []string{fmt.Sprintf("%s executor on %s, MLX %s, mlx-c %s", r.Executor, r.Device, r.MLX, r.MLXC)},
		Plots:   r.plots(),
		Legend: "Errors are against the float64 oracle. Floor: 2·eps·max|oracle|, an error that always passes. " +
			"Ratio: (ours + floor) / (MLX + floor); below 1 our gradient is the more accurate.",
		Tables:      []table{r.summaryTable()},
		FaultsTitle: "MLX's gradient is not valid",
	}
	p.addRun(r.TF32, r.Incomplete, len(r.Rows))
	if r.Sample {
		p.Facts = append(p.Facts, "A sample of the suite: mean ratios are not judged")
	}
	if r.Kernels > 0 {
		p.Facts = append(p.Facts, fmt.Sprintf("%d kernels compiled or loaded in %.1f s", r.Kernels, r.CompileSeconds))
	}
	for _, group := range sameMessage(failures(r.Rows), func(c Row) string { return c.Message }) {
		p.Failures = append(p.Failures, note{heading(group), group[0].Message})
	}
	for _, s := range r.Suites {
		if !s.Pass {
			p.Failures = append(p.Failures, note{s.Op + " " + s.DType, s.verdict()})
		}
	}
	for _, group := range sameMessage(r.Rows, func(c Row) string { return c.MLXMessage }) {
		if c := group[0]; c.MLXMessage != "" {
			p.Faults = append(p.Faults, note{heading(group), fmt.Sprintf("%s: %s", c.MLX, c.MLXMessage)})
		}
	}
	for _, group := range byOp(r.Rows) {
		p.Tables = append(p.Tables, rowTable(group))
	}
	return p
}

// addRun adds facts that both kinds of runs have.
func (p *page) addRun(tf32 string, incomplete bool, rows int) {
	if tf32 != "" {
		p.Facts = append(p.Facts, fmt.Sprintf("Float32 matrices are multiplied with TF32 %s (MLX_ENABLE_TF32)", tf32))
	}
	if why := runFault(incomplete, rows); why != "" {
		p.Facts = append(p.Facts, strings.ToUpper(why[:1])+why[1:])
	}
}

func (r *Report) summaryTable() table {
	t := table{
		Title: "Summary",
		Columns: []column{
			{Name: "operation"},
			{Name: "dtype"},
			{Name: "rows", Number: true, Help: "outputs of cases"},
			{Name: "passed", Number: true},
			{Name: "worst", Number: true, Help: "largest ratio of errors"},
			{Name: "mean", Number: true, Help: "geometric mean of the ratios"},
			{Name: "judged", Help: "verdict on the mean ratio, or no if it is not judged"},
			{Name: "time", Number: true, Help: "seconds for our gradient, MLX's and the oracle"},
		},
	}
	for _, s := range r.Suites {
		c := r.count(s.Op, s.DType)
		judged := cell{Text: "no"}
		if s.Judged {
			judged.Text = "ok"
			if !s.Pass {
				judged = cell{Text: "FAIL", Bad: true}
			}
		}
		passed := count(c.passed)
		passed.Bad = c.passed < c.rows
		t.Rows = append(t.Rows, []cell{
			words(s.Op), words(s.DType), count(c.rows), passed,
			figure(c.worst, brief(c.worst, 2)), figure(float64(s.Ratio), brief(float64(s.Ratio), 3)), judged,
			figure(s.Seconds, brief(s.Seconds, 1)),
		})
	}
	return t
}

// rowTable is the table of the rows of an operation.
func rowTable(rows []Row) table {
	t := table{
		Title: rows[0].Op, Long: true,
		Columns: []column{
			{Name: "case"},
			{Name: "dtype"},
			{Name: "result"},
			{Name: "max", Number: true, Help: "our largest error"},
			{Name: "MLX max", Number: true, Help: "MLX's largest error"},
			{Name: "mean", Number: true, Help: "our mean error"},
			{Name: "MLX mean", Number: true, Help: "MLX's mean error"},
			{Name: "floor", Number: true, Help: "2·eps·max|oracle|: a largest error up to this passes"},
			{Name: "ratio", Number: true, Help: "(ours + floor) / (MLX + floor)"},
			{Name: "verdict"},
			{Name: "MLX", Help: "verdict on MLX's gradient if it is not valid"},
		},
	}
	for _, c := range rows {
		text := cells(c) // case, dtype, output, five errors, ratio, verdict, MLX
		line := []cell{words(text[0]), words(text[1]), words(text[2])}
		for i, v := range []Number{c.MaxErr, c.MLXMaxErr, c.MeanErr, c.MLXMeanErr, c.Floor, c.Ratio} {
			line = append(line, figure(float64(v), text[3+i]))
		}
		line = append(line, cell{Text: text[9], Bad: !c.Pass}, words(text[10]))
		t.Rows = append(t.Rows, line)
	}
	return t
}

// page returns the report of a timing run: a table for each operation and the failures.
func (b *Bench) page() page {
	name := b.DeviceName
	if name == "" {
		name = b.Device
	}
	p := page{
		Title: "Gradients timed beside MLX's", Verdict: b.verdict(), Good: b.Succeeded(), Plots: b.plots(),
		FaultsTitle: "Not compared with MLX",
		Facts: []string{fmt.Sprintf("%s executor on %s, MLX %s, mlx-c %s, %s",
			b.Executor, name, b.MLX, b.MLXC, b.Started.Format("2006-01-02"))},
	}
	if b.Limits != nil {
		p.Facts = append(p.Facts, b.Limits.sentence())
	}
	p.addRun(b.TF32, b.Incomplete, len(b.Rows))
	p.Legend = "Medians in µs ± half the interquartile range in percent. Ratio: MLX ÷ ours, above 1 ours is faster. " +
		"Limit: ours ÷ " + b.limitMeaning() + ". Extra: MiB of peak memory beyond arguments and results."
	if b.hasMarks() {
		p.Legend += " " + wallLegend + "."
	}
	for start := 0; start < len(b.Rows); {
		end := start
		for end < len(b.Rows) && b.Rows[end].Op == b.Rows[start].Op {
			end++
		}
		p.Tables = append(p.Tables, benchPageTable(b.Rows[start:end], b.Device))
		start = end
	}
	for _, r := range b.Rows {
		if r.Error != "" {
			p.Failures = append(p.Failures, note{r.title(), r.Error})
		}
		if r.MLXMessage != "" {
			p.Faults = append(p.Faults, note{r.title(), r.MLXMessage})
		}
	}
	return p
}

func benchPageTable(rows []BenchRow, device string) table {
	_, unit := rows[0].Rate(&Timing{Median: 1})
	t := table{
		Title: rows[0].Op,
		Columns: []column{
			{Name: "case"},
			{Name: "dtype"},
			{Name: "pass"},
			{Name: "ours", Number: true, Help: "our median in µs"},
			{Name: "±%", Number: true, Help: "our spread"},
			{Name: "MLX", Number: true, Help: "MLX's median in µs"},
			{Name: "±%", Number: true, Help: "MLX's spread"},
			{Name: "ratio", Number: true, Help: "MLX ÷ ours"},
			{Name: unit, Number: true, Help: "our rate"},
			{Name: "MLX " + unit, Number: true, Help: "MLX's rate"},
			{Name: "limit", Number: true, Help: "ours ÷ the measured limit"},
			{Name: "extra", Number: true, Help: "our extra memory in MiB"},
			{Name: "MLX extra", Number: true, Help: "MLX's extra memory in MiB"},
		},
	}
	for i := range rows {
		r := &rows[i]
		ours, mlx := r.pageCells(r.Ours), r.pageCells(r.MLX)
		line := []cell{words(r.Case), words(r.DType), words(string(r.Pass))}
		ratio, limit := r.quotients(device)
		line = append(line, ours.time, ours.spread, mlx.time, mlx.spread, figure(float64(r.Ratio), ratio),
			ours.rate, mlx.rate, figure(float64(r.OverLimit), limit), ours.extra, mlx.extra)
		if r.Error != "" {
			line[3] = cell{Text: "FAIL", Value: "NaN", Bad: true}
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// pageCells holds the cells of one side.
type pageCells struct{ time, spread, rate, extra cell }

func (r *BenchRow) pageCells(t *Timing) pageCells {
	if t == nil {
		none := figure(math.NaN(), "-")
		return pageCells{none, none, none, none}
	}
	text := r.sideCells(t)
	rate, _ := r.Rate(t)
	spread := 100 * t.Spread()
	const mebibyte = 1 << 20
	return pageCells{
		time: figure(t.Median, digits(t.Median)), spread: figure(spread, strconv.FormatFloat(spread, 'f', 0, 64)),
		rate: figure(rate, text.rate), extra: figure(float64(t.ExtraMemory)/mebibyte, text.extra),
	}
}
