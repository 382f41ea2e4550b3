package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// rowColumns are the columns of the CSV of a comparison. Each has the name of its field in JSON.
var rowColumns = []string{
	"op", "case", "dtype", "shape", "layout", "output", "output_dtype",
	"max_err", "mlx_max_err", "mean_err", "mlx_mean_err", "floor", "ratio",
	"draws", "launches", "pass", "message", "mlx_gradient", "mlx_message",
}

// WriteCSV writes a line for each row. Numbers have all their digits, and "NaN" or "Infinity" as in JSON. A shape's
// lengths are joined by x.
func (r *Report) WriteCSV(w io.Writer) error {
	lines := [][]string{rowColumns}
	for _, c := range r.Rows {
		var shape []string
		for _, n := range c.Shape {
			shape = append(shape, strconv.Itoa(n))
		}
		lines = append(lines, []string{
			c.Op, c.Name, c.DType, strings.Join(shape, "x"), c.Layout, c.Output, c.OutputDType,
			c.MaxErr.String(), c.MLXMaxErr.String(), c.MeanErr.String(), c.MLXMeanErr.String(), c.Floor.String(), c.Ratio.String(),
			strconv.Itoa(c.Draws), strconv.Itoa(c.Launches), strconv.FormatBool(c.Pass), c.Message, string(c.MLX), c.MLXMessage,
		})
	}
	if err := csv.NewWriter(w).WriteAll(lines); err != nil {
		return fmt.Errorf("writing CSV: %w", err)
	}
	return nil
}
