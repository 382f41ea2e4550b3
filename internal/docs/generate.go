package docs

import (
	"fmt"
	"path/filepath"
	"slices"
)

// generate returns all generated files. root is the root of the repository.
func generate(root string) (files, error) {
	out := files{}
	ratios, err := readRatios(filepath.Join(root, gpuFile))
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(ratios, func(a, b ratio) int { return operationIndex(a.op) - operationIndex(b.op) })
	for _, step := range []func() error{
		func() error { return out.memoryFigure(root) },
		func() error { return out.ratioFigure("ratios", ratios, func(r ratio) string { return r.op }) },
		func() error { return out.pathPicture(root) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	s, err := readSources(root)
	if err != nil {
		return nil, err
	}
	errs, err := readCSV(filepath.Join(root, "docs/cpu/parity.csv"))
	if err != nil {
		return nil, err
	}
	cpuRatios, err := readRatios(filepath.Join(root, cpuFile))
	if err != nil {
		return nil, err
	}
	composed, err := readCSV(filepath.Join(root, compositionFile))
	if err != nil {
		return nil, err
	}
	timings := []timing{
		{
			name: "speed", device: "a GPU", ratios: ratios,
			remark: "Gradients on NVIDIA H200s, TF32 on. [The files](../h200/README.md) have the times and commands.",
		},
		{
			name: "speed-cpu", device: "a CPU", ratios: cpuRatios,
			remark: "Gradients on a CPU. [The files](../cpu/README.md) have the times and commands.",
		},
	}
	for _, o := range operations {
		if err := out.operationPage(root, o, s, timings, composed, errs); err != nil {
			return nil, fmt.Errorf("page of %s: %w", o.functions[0], err)
		}
	}
	return out, nil
}

// operationIndex orders figures: norms, rows, losses, attention.
func operationIndex(op string) int {
	return slices.Index([]string{
		"rmsnorm", "layernorm", "rmsnorm-residual", "add-rmsnorm", "softmax", "transpose2d", "embedding",
		"cross-entropy", "linear-cross-entropy", "matmul", "attention",
	}, op)
}
