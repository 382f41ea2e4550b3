// Package docs generates the figures and the pages of operations in docs, and tests all documents: their links,
// commands, programs and excerpts.
package docs

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"
)

// A record is a line of a CSV file, by the names of its columns.
type record map[string]string

// number returns a column that must be a number.
func (r record) number(column string) (float64, error) {
	v, err := strconv.ParseFloat(r[column], 64)
	if err != nil {
		return 0, fmt.Errorf("column %s: %w", column, err)
	}
	return v, nil
}

func readCSV(path string) ([]record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var out []record
	for _, line := range lines[min(1, len(lines)):] {
		r := record{}
		for i, name := range lines[0] {
			r[name] = line[i]
		}
		out = append(out, r)
	}
	return out, nil
}

// A ratio is MLX's time divided by ours for a case.
type ratio struct {
	op, caseName, dtype string
	value               float64
}

// gpuFile and cpuFile were written from reports of `mlxgrad bench`.
const gpuFile, cpuFile = "docs/h200/bench.csv", "docs/cpu/bench.csv"

// readRatios returns the ratios of a file.
func readRatios(path string) ([]ratio, error) {
	records, err := readCSV(path)
	if err != nil {
		return nil, err
	}
	var out []ratio
	for _, r := range records {
		if r["side"] != "ours" || r["mlx_over_ours"] == "" {
			continue
		}
		value, err := r.number("mlx_over_ours")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, ratio{op: r["op"], caseName: r["case"], dtype: r["dtype"], value: value})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no ratio", path)
	}
	return out, nil
}
