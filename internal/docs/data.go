// Package docs generates the figures and the pages of operations in docs, and tests all documents: their links,
// commands, programs and excerpts.
package docs

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// readFiles returns the lines of the CSV files that match a pattern, in the order of their names. The column file holds
// the name of the file.
func readFiles(root, pattern string) ([]record, error) {
	paths, err := filepath.Glob(filepath.Join(root, pattern)) // in the order of names
	if err != nil {
		return nil, err
	}
	var out []record
	for _, path := range paths {
		records, err := readCSV(path)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			r["file"] = filepath.Base(path)
		}
		out = append(out, records...)
	}
	return out, nil
}

// A ratio is MLX's time divided by ours for a case.
type ratio struct {
	file                string // its name without the folder
	op, caseName, dtype string
	value               float64
}

// olderKernels is the prefix of files with times of kernels that other files replace.
const olderKernels = "2026-11-21-"

// gpuFiles and cpuFiles match the files of `mlxgrad bench`.
const gpuFiles, cpuFiles = "docs/h200/*.csv", "docs/cpu/bench*.csv"

// readRatios returns the ratios of the files that match a pattern, with TF32 on if the device has TF32. A later file
// replaces the cases of an earlier one.
func readRatios(root, pattern string) ([]ratio, error) {
	records, err := readFiles(root, pattern)
	if err != nil {
		return nil, err
	}
	var out []ratio
	for _, r := range records {
		if strings.HasPrefix(r["file"], olderKernels) || r["side"] != "ours" || r["mlx_over_ours"] == "" || r["tf32"] == "off" {
			continue
		}
		value, err := r.number("mlx_over_ours")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r["file"], err)
		}
		next := ratio{file: r["file"], op: r["op"], caseName: r["case"], dtype: r["dtype"], value: value}
		same := func(old ratio) bool {
			return old.op == next.op && old.caseName == next.caseName && old.dtype == next.dtype
		}
		out = append(slices.DeleteFunc(out, same), next)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no ratio", pattern)
	}
	return out, nil
}

var benchCommand = regexp.MustCompile("`(mlxgrad bench [^`]*)`")

// cpuCommands returns the command that wrote each of cpuFiles, by file name. The table of docs/cpu/README.md has them.
func cpuCommands(root string) (map[string]string, error) {
	table, err := os.ReadFile(filepath.Join(root, "docs/cpu/README.md"))
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(root, cpuFiles))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, path := range paths {
		name := filepath.Base(path)
		_, row, _ := strings.Cut(string(table), "\n| `"+name+"` |")
		row, _, _ = strings.Cut(row, "\n")
		command := benchCommand.FindStringSubmatch(row)
		if command == nil {
			return nil, fmt.Errorf("docs/cpu/README.md has no command of mlxgrad bench for %s", name)
		}
		out[name] = command[1]
	}
	return out, nil
}
