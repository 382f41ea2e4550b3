package docs

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
)

// accuracy writes the figure of errors and the counts of rows. errs has the rows of docs/cpu/parity.csv. undrawn counts
// the rows that the figure leaves out.
func (f files) accuracy(out *bytes.Buffer, o operation, errs []record) error {
	var points []point
	rows, passed, undrawn := 0, 0, 0
	for _, dtype := range dtypes {
		for _, r := range errs {
			if !slices.Contains(o.suites, r["op"]) || r["dtype"] != dtype {
				continue
			}
			rows++
			if r["pass"] == "true" {
				passed++
			}
			ours, err := r.number("max_err")
			if err != nil {
				return err
			}
			floor, err := r.number("floor")
			if err != nil {
				return err
			}
			mlx, err := r.number("mlx_max_err")
			// MLX has no valid gradient, the result is zero, or both overflow.
			if err != nil || floor == 0 || !drawable(mlx/floor) || !drawable(ours/floor) {
				undrawn++
				continue
			}
			points = append(points, point{Series: dtype, X: clamp(mlx / floor), Y: clamp(ours / floor)})
		}
	}
	if rows == 0 {
		return fmt.Errorf("docs/cpu/parity.csv has no row of %v", o.suites)
	}
	name := "accuracy-" + o.file
	err := f.draw(name, 12, 8, func(t theme) (*plot.Plot, error) {
		return t.errors("MLX's largest error ÷ floor", "our largest error ÷ floor", points,
			func(x float64) float64 { return max(2*x, 1) })
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n## Accuracy\n\n%s\n\n", picture("docs/ops", name, "Our largest errors over MLX's, below the limit"))
	fmt.Fprintf(out, "Each point is a result of a case in the sample of `mlxgrad parity` on a CPU ([parity.csv](../cpu/parity.csv)):"+
		" %d of %d rows\npass. Points below the line pass the [accuracy rule](../accuracy.md#the-rule)."+
		" Errors below %g and above\n%g are drawn at these.",
		passed, rows, least, greatest)
	if undrawn > 0 {
		fmt.Fprintf(out, " %d rows without a\nvalid gradient of MLX, or with zeros or infinities, are not drawn.", undrawn)
	}
	out.WriteString("\n")
	return nil
}

// least and greatest limit the errors in a figure, in units of the floor. A logarithmic axis has no zero, and some of
// MLX's errors are 1e15.
const least, greatest = 1e-3, 1e2

func clamp(v float64) float64 { return min(max(v, least), greatest) }

// speed writes the figure of ratios, if the operation was timed on a GPU.
func (f files) speed(out *bytes.Buffer, o operation, ratios []ratio) error {
	var of []ratio
	for _, r := range ratios {
		if slices.Contains(o.suites, r.op) {
			of = append(of, r)
		}
	}
	out.WriteString("\n## Speed\n\n")
	if len(of) == 0 {
		out.WriteString("The benchmarks do not time this operation. [Benchmarks](../benchmarks.md) has the others.\n")
		return nil
	}
	name := "speed-" + o.file
	if err := f.ratioFigure(name, of, func(r ratio) string { return r.caseName }); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n\nGradients on one NVIDIA H200 or H100, TF32 on. [The files](../h200/README.md) have the times and "+
		"commands; [Benchmarks](../benchmarks.md#cpu)\nhas those of a CPU.\n",
		picture("docs/ops", name, "MLX's time divided by ours for each case"))
	return nil
}

func drawable(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
