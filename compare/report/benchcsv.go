package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// benchColumns are the columns of the CSV. scripts/bench_torch.py writes the same columns, with PyTorch or one of its
// kernels as the side, so that the files can be joined.
var benchColumns = []string{
	"device", "tf32", "op", "case", "dtype", "pass", "side",
	"median_us", "q1_us", "q3_us", "wall_us", "submit_us", "build_us", "copies", "repetitions_us",
	"bytes", "flops", "rate", "unit", "extra_memory", "mlx_over_ours", "over_limit", "message",
	"limit_gb_per_s", "limit_tflop_per_s",
}

// side is one timing of a row with its name.
type side struct {
	name   string
	timing *Timing
}

// sides returns the measured timings.
func (r *BenchRow) sides() []side {
	var out []side
	for _, s := range []side{{"ours", r.Ours}, {"mlx", r.MLX}, {"add", r.Add}} {
		if s.timing != nil {
			out = append(out, s)
		}
	}
	return out
}

// WriteCSV writes a line for each side of each row: "ours", "mlx", and "add" for the limit of a GPU. A failed row has a
// line for "ours" without times. Spaces separate the repetitions. The limits of a CPU are in every line.
func (b *Bench) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	lines := [][]string{benchColumns}
	for _, r := range b.Rows {
		sides := r.sides()
		if r.Error != "" {
			nan := math.NaN()
			sides = []side{{"ours", &Timing{Median: nan, Q1: nan, Q3: nan, Wall: nan, Submit: nan, Build: nan}}}
		}
		for _, s := range sides {
			lines = append(lines, b.csvLine(r, s))
		}
	}
	if err := out.WriteAll(lines); err != nil {
		return fmt.Errorf("writing CSV: %w", err)
	}
	return nil
}

func (b *Bench) csvLine(r BenchRow, s side) []string {
	t := s.timing
	ratio, limit := Number(math.NaN()), Number(math.NaN())
	message := ""
	switch s.name {
	case "ours":
		ratio, limit, message = r.Ratio, r.OverLimit, r.Error
		if message == "" {
			message = r.MLXMessage
		}
	case "add":
		r.Bytes = r.AddBytes
	}
	rate, unit := r.Rate(t)
	limits := CPULimits{math.NaN(), math.NaN()}
	if b.Limits != nil {
		limits = *b.Limits
	}
	var repetitions []string
	for _, v := range t.Repetitions {
		repetitions = append(repetitions, plain(v))
	}
	return []string{
		b.DeviceName, b.TF32, r.Op, r.Case, r.DType, string(r.Pass), s.name,
		plain(t.Median), plain(t.Q1), plain(t.Q3), plain(t.Wall), plain(t.Submit), plain(t.Build), strconv.Itoa(t.Copies),
		strings.Join(repetitions, " "),
		strconv.Itoa(r.Bytes), plain(r.FLOPs), plain(rate), unit, strconv.Itoa(t.ExtraMemory),
		plain(float64(ratio)), plain(float64(limit)), message,
		plain(limits.Bandwidth), plain(limits.Arithmetic),
	}
}

// plain writes a number with all its digits, and nothing for NaN.
func plain(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// WriteBenchstat writes each repetition as a line of Go's benchmark format for benchstat (for example with -col /side).
// It leaves out failed rows.
func (b *Bench) WriteBenchstat(w io.Writer) error {
	out := &printer{w: w}
	out.printf("device: %s\nmlx: %s\nexecutor: %s\n", b.DeviceName, b.MLX, b.Executor)
	if b.TF32 != "" {
		out.printf("tf32: %s\n", b.TF32)
	}
	// A slash begins another key and a space ends the name.
	name := strings.NewReplacer(", ", ",", " ", "-", "/", ":")
	for _, r := range b.Rows {
		if r.Error != "" {
			continue
		}
		for _, s := range r.sides() {
			for i, v := range s.timing.Repetitions {
				out.printf("BenchmarkGradient/op=%s/case=%s/dtype=%s/pass=%s/side=%s %d %.1f ns/op",
					r.Op, name.Replace(r.Case), r.DType, r.Pass, s.name, s.timing.Copies, 1e3*v)
				out.printf(" %.1f wall-ns %.1f build-ns %d extra-B\n",
					1e3*s.timing.WallRepetitions[i], 1e3*s.timing.BuildRepetitions[i], s.timing.ExtraMemory)
			}
		}
	}
	return out.err
}
