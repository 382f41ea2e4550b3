package docs

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
)

const ratioAxis = "MLX's time ÷ ours; right of 1× we are faster"

// dtypes are the series of figures of ratios and errors, in order.
var dtypes = []string{"float32", "float16", "bfloat16"}

// files maps paths, from the root of the repository, to contents.
type files map[string][]byte

// draw adds a figure in both themes.
func (f files) draw(name string, width, height float64, make func(theme) (*plot.Plot, error)) error {
	for _, theme := range themes {
		p, err := make(theme)
		if err != nil {
			return fmt.Errorf("figure %s: %w", name, err)
		}
		var out bytes.Buffer
		if err := writeSVG(&out, p, width, height); err != nil {
			return fmt.Errorf("figure %s: %w", name, err)
		}
		f[figurePath(name, theme.Name)] = out.Bytes()
	}
	return nil
}

func figurePath(name, theme string) string { return "docs/img/" + name + "-" + theme + ".svg" }

// memoryFigure shows the memory of attention over the length.
func (f files) memoryFigure(root string) error {
	records, err := readCSV(filepath.Join(root, "docs/cpu/attention-memory.csv"))
	if err != nil {
		return err
	}
	var points []point
	for _, side := range []string{"mlx", "ours"} {
		for _, r := range records {
			if r["dtype"] != "float32" || r["side"] != side {
				continue
			}
			var length int
			if _, err := fmt.Sscanf(r["case"], "1x1x%dx64, causal", &length); err != nil {
				return fmt.Errorf("case %s: %w", r["case"], err)
			}
			bytes, err := r.number("extra_memory")
			if err != nil {
				return err
			}
			points = append(points, point{
				Series: map[string]string{"mlx": "MLX", "ours": "mlxgrad"}[side],
				X:      float64(length), Y: bytes / (1 << 20),
			})
		}
	}
	return f.draw("memory", 15, 8, func(t theme) (*plot.Plot, error) {
		return t.lines("length of the sequence", "MiB beyond operands and results", points)
	})
}

// ratioFigure draws the ratios, a row for each label in the order of first appearance.
func (f files) ratioFigure(name string, ratios []ratio, label func(ratio) string) error {
	var labels []string
	for _, r := range ratios {
		if !slices.Contains(labels, label(r)) {
			labels = append(labels, label(r))
		}
	}
	var points []point
	for _, dtype := range dtypes {
		for _, r := range ratios {
			if r.dtype == dtype {
				row := float64(slices.Index(labels, label(r)))
				points = append(points, point{Series: dtype, X: r.value, Y: row})
			}
		}
	}
	return f.draw(name, 15, 2.2+0.62*float64(len(labels)), func(t theme) (*plot.Plot, error) {
		return t.ratios(ratioAxis, labels, points)
	})
}
