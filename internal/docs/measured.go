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
		" Values below %g\nare drawn at %[3]g, and values above %[4]g at %[4]g.",
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

// A timing is the source of a figure of ratios.
type timing struct {
	name, device string
	remark       string // how the ratios were measured
	ratios       []ratio
}

// speed writes a figure for each timing that has the operation, and counts the ratios above 1.
func (f files) speed(out *bytes.Buffer, o operation, timings []timing, composed []record) error {
	out.WriteString("\n## Speed\n\n")
	timed, err := compositions(out, o, composed)
	if err != nil {
		return err
	}
	for _, from := range timings {
		var of []ratio
		faster := 0
		for _, r := range from.ratios {
			if !slices.Contains(o.suites, r.op) {
				continue
			}
			of = append(of, r)
			if r.value > 1 {
				faster++
			}
		}
		if len(of) == 0 {
			continue
		}
		name := from.name + "-" + o.file
		if err := f.ratioFigure(name, of, func(r ratio) string { return r.caseName }); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n\n%s\nOurs are faster than MLX's in %d of %d rows.\n\n",
			picture("docs/ops", name, "MLX's time divided by ours for each case on "+from.device),
			from.remark, faster, len(of))
		timed = true
	}
	if !timed {
		out.WriteString("The benchmarks do not time this operation. [Benchmarks](../benchmarks.md) has the others.\n")
	} else {
		out.WriteString("[Benchmarks](../benchmarks.md) compares all operations.\n")
	}
	return nil
}

func drawable(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
