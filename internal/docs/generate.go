package docs

import "slices"

// generate returns all generated files. root is the root of the repository.
func generate(root string) (files, error) {
	out := files{}
	ratios, err := gpuRatios(root)
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
	return out, nil
}

// operationIndex orders figures: norms, rows, losses, attention.
func operationIndex(op string) int {
	return slices.Index([]string{
		"rmsnorm", "layernorm", "rmsnorm-residual", "add-rmsnorm", "softmax", "transpose2d", "embedding",
		"cross-entropy", "linear-cross-entropy", "attention",
	}, op)
}
