package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// WriteTable writes the report as text: the machine, a table for each operation, and the failures.
func (b *Bench) WriteTable(w io.Writer) error {
	out := &printer{w: w}
	name := b.DeviceName
	if name == "" {
		name = b.Device
	}
	out.printf("%s executor on %s, MLX %s, mlx-c %s, %s\n", b.Executor, name, b.MLX, b.MLXC, b.Started.Format("2006-01-02"))
	out.tf32(b.TF32)
	if b.Limits != nil {
		out.printf("%s\n", b.Limits.sentence())
	}
	out.printf("Medians in µs ± half the interquartile range; ratio: MLX ÷ ours, above 1 ours is faster;\n"+
		"limit: ours ÷ %s; extra: MiB of peak memory beyond arguments and results\n", b.limitMeaning())
	for start := 0; start < len(b.Rows); {
		end := start
		for end < len(b.Rows) && b.Rows[end].Op == b.Rows[start].Op {
			end++
		}
		out.benchTable(b.Rows[start:end], b.Device)
		start = end
	}
	if b.hasMarks() {
		out.printf("\n%s\n", wallLegend)
	}
	said := false
	for _, r := range b.Rows {
		if r.MLXMessage == "" {
			continue
		}
		if !said {
			out.printf("\nNot compared with MLX:\n")
			said = true
		}
		out.printf("  %s: %s\n", r.title(), strings.ReplaceAll(r.MLXMessage, "\n", "; "))
	}
	for _, r := range b.Rows {
		if r.Error != "" {
			out.printf("\nFAIL %s\n%s\n", r.title(), indent(r.Error))
		}
	}
	out.printf("\n")
	if b.Incomplete {
		out.printf("interrupted: some rows were not measured\n")
	}
	if len(b.Rows) == 0 {
		out.printf("nothing ran\n")
		return out.err
	}
	out.printf("%s\n", b.verdict())
	return out.err
}

// title names a row.
func (r *BenchRow) title() string {
	return fmt.Sprintf("%s %s %s %s", r.Op, r.Case, r.DType, r.Pass)
}

// Line returns the row in one line, for progress output.
func (r *BenchRow) Line() string {
	switch {
	case r.Error != "":
		return r.title() + ": FAIL"
	case r.MLX == nil:
		return fmt.Sprintf("%s: %s µs", r.title(), digits(r.Ours.Median))
	}
	return fmt.Sprintf("%s: %s µs, MLX %s µs, ratio %s", r.title(), digits(r.Ours.Median), digits(r.MLX.Median), fixed(r.Ratio))
}

func (p *printer) benchTable(rows []BenchRow, device string) {
	unit := "GB/s"
	if rows[0].FLOPs > 0 {
		unit = "TFLOP/s"
	}
	p.printf("\n%s\n", rows[0].Op)
	header := []string{
		"case", "dtype", "pass", "ours", "MLX", "ratio", unit, "MLX", "limit", "build", "MLX", "extra", "MLX",
	}
	var cells [][]string
	for i := range rows {
		r := &rows[i]
		ours, mlx := r.sideCells(r.Ours), r.sideCells(r.MLX)
		ratio, limit := r.quotients(device)
		cells = append(cells, []string{
			r.Case, r.DType, string(r.Pass), ours.time, mlx.time, ratio, ours.rate, mlx.rate, limit,
			ours.build, mlx.build, ours.extra, mlx.extra,
		})
	}
	p.columns("lll"+strings.Repeat("r", 10), header, cells)
}

// wallMark follows a quotient of times from the submission to an idle GPU. On a CPU all times are such times.
const (
	wallMark   = "*"
	wallLegend = wallMark + " with the host's time of both sides, since the time of the GPU alone is not known for one"
)

// quotients returns the texts of Ratio and OverLimit.
func (r *BenchRow) quotients(device string) (ratio, limit string) {
	text := func(n Number, a, b *Timing) string {
		if device != "cpu" && comparedByWall(a, b) {
			return fixed(n) + wallMark
		}
		return fixed(n)
	}
	return text(r.Ratio, r.MLX, r.Ours), text(r.OverLimit, r.Ours, r.Add)
}

// hasMarks reports whether a quotient has a mark.
func (b *Bench) hasMarks() bool {
	return slices.ContainsFunc(b.Rows, func(r BenchRow) bool {
		ratio, limit := r.quotients(b.Device)
		return strings.Contains(ratio+limit, wallMark)
	})
}

// sideCells holds the cells of one side in the table.
type sideCells struct{ time, rate, build, extra string }

func (r *BenchRow) sideCells(t *Timing) sideCells {
	if t == nil {
		return sideCells{"-", "-", "-", "-"}
	}
	rate, _ := r.Rate(t)
	const mebibyte = 1 << 20
	return sideCells{
		time:  fmt.Sprintf("%s ±%.0f%%", digits(t.Median), 100*t.Spread()),
		rate:  digits(rate),
		build: digits(t.Build),
		extra: strconv.FormatFloat(float64(t.ExtraMemory)/mebibyte, 'f', 2, 64),
	}
}

// verdict counts the rows by the faster side.
func (b *Bench) verdict() string {
	faster, compared, failed := 0, 0, 0
	for _, r := range b.Rows {
		if r.Error != "" {
			failed++
			continue
		}
		if ratio := float64(r.Ratio); !math.IsNaN(ratio) {
			compared++
			if ratio >= 1 {
				faster++
			}
		}
	}
	return fmt.Sprintf("%d of %d rows at least as fast as MLX, %d rows not compared, %d failed",
		faster, compared, len(b.Rows)-compared-failed, failed)
}

// digits writes a number with three digits, or all digits before the point.
func digits(v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case math.Abs(v) >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// fixed writes a ratio.
func fixed(n Number) string {
	if math.IsNaN(float64(n)) {
		return "-"
	}
	return strconv.FormatFloat(float64(n), 'f', 2, 64)
}
