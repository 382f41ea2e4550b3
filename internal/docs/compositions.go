package docs

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// compositionFile has the times of operations that MLX has no gradient of: `mlx` is a composition of MLX operations.
const compositionFile = "docs/h200/compositions.csv"

// compositionSides are the columns of the table: the sides of a case and their names.
var compositionSides = [][2]string{{"ours", "ours"}, {"mlx", "MLX operations"}, {"fla", "flash-linear-attention"}}

// compositions writes a table of an operation's times and memory. It reports whether there is one.
func compositions(out *bytes.Buffer, o operation, records []record) (bool, error) {
	type row struct{ device, name, dtype string }
	var rows []row
	cells := map[row]map[string]record{}
	for _, r := range records {
		if !slices.Contains(o.suites, r["op"]) || r["message"] != "" {
			continue
		}
		at := row{r["device"], r["case"], r["dtype"]}
		if cells[at] == nil {
			cells[at] = map[string]record{}
			rows = append(rows, at)
		}
		cells[at][r["side"]] = r
	}
	if len(rows) == 0 {
		return false, nil
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.name, b.name), cmp.Compare(a.dtype, b.dtype))
	})
	out.WriteString("MLX has no gradient of this operation on a GPU. The table has the time of values and gradients in ms and, in\n" +
		"parentheses, the memory beyond the results in MiB. [The files](../h200/README.md) have the commands.\n\n" +
		"| device | case | dtype |")
	for _, side := range compositionSides {
		fmt.Fprintf(out, " %s |", side[1])
	}
	out.WriteString("\n|---|---|---|---|---|---|\n")
	for _, at := range rows {
		fmt.Fprintf(out, "| %s | %s | %s |", at.device, at.name, at.dtype)
		for _, side := range compositionSides {
			r, ok := cells[at][side[0]]
			if !ok {
				out.WriteString(" |")
				continue
			}
			time, err := r.number("median_us")
			if err != nil {
				return true, err
			}
			memory, err := r.number("extra_memory")
			if err != nil {
				return true, err
			}
			fmt.Fprintf(out, " %.4g (%.0f) |", time/1e3, memory/(1<<20))
		}
		out.WriteString("\n")
	}
	out.WriteString("\n")
	return true, nil
}
