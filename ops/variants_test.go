package ops

import (
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// variants are launches in geometries that no table has today and the kernels are
// right in, because their texts promise it: what a table's next entry may reach.
// variantGeometry stands in the place of a backend in the launches that no operation makes.
const variantGeometry mlxc.Backend = "variant"

func variants(launches []KernelLaunch) []KernelLaunch {
	var list []KernelLaunch
	for _, l := range launches {
		name := l.Kernel.Name()
		if l.Backend != mlxc.BackendMetal && name != "softmax_forward" {
			continue
		}
		l.Backend = variantGeometry
		l.Launch.Template = slices.Clone(l.Launch.Template)
		l.Launch.Outputs = slices.Clone(l.Launch.Outputs)
		if name == "softmax_forward" {
			// Of hosts alone today; packs as a GPU has them.
			setTemplate(l.Launch.Template, "VEC", 4)
			setTemplate(l.Launch.Template, "VECS_PER_THREAD", 1)
		}
		switch name {
		case "rms_norm_compute_rms_inv", "rms_norm_backward_dx", "rms_norm_backward",
			"rms_norm_residual", "add_rms_norm", "softmax_backward", "softmax_forward", "layer_norm_backward", "layer_norm_bwd_input",
			"cross_entropy_fwd_bwd", "cross_entropy_forward", "cross_entropy_backward":
			// Two groups share the rows, so each uses its slots again: with three simdgroups,
			// and with as many as there are slots. Rows of whole packs with too few threads to
			// hold them, where a kernel allows that, and with more threads than packs.
			sizes := map[string][]int{"37x129": {96, 1024}, "6x128": {5, 96}}[l.Case]
			for _, threads := range sizes {
				if threads == 5 && (name == "rms_norm_backward" || name == "layer_norm_backward") {
					continue
				}
				v := l
				if threads == 5 && strings.HasPrefix(name, "cross_entropy") {
					v.Launch.Template = slices.Clone(l.Launch.Template)
					setTemplate(v.Launch.Template, "INTERLEAVE", 1) // five threads cannot interleave by more
				}
				v.Launch.Grid, v.Launch.Threadgroup = [3]int{2 * threads}, [3]int{threads}
				if name == "rms_norm_backward" || name == "layer_norm_backward" {
					v.Launch.Outputs = slices.Clone(l.Launch.Outputs)
					shareRows(v.Launch.Outputs, 2)
				}
				list = append(list, v)
			}
		case "rms_norm_backward_statistics", "layer_norm_backward_statistics":
			// One group has two rows at a time, and then the last, in as many simdgroups as
			// there are slots.
			if l.Case == "3x8209" {
				l.Launch.Grid, l.Launch.Threadgroup = [3]int{1024}, [3]int{1024}
				setTemplate(l.Launch.Template, "ROWS_PER_STEP", 2)
				list = append(list, l)
			}
		case "rms_norm_backward_columns", "layer_norm_backward_columns":
			// Two groups share the rows of a block.
			if l.Case == "3x8209" {
				l.Launch.Grid[1] = 2
				shareRows(l.Launch.Outputs, 2)
				list = append(list, l)
			}
		case "transpose_2d":
			// One group of two simdgroups walks over all tiles of both matrices; floats in
			// tiles as wide as those of halves.
			if l.Case == "2 of 37x129" || l.Case == "1 of 130x70" {
				l.Launch.Grid, l.Launch.Threadgroup = [3]int{64, 1, 1}, [3]int{64, 1, 1}
				setTemplate(l.Launch.Template, "GROUP_SIZE", 64)
				setTemplate(l.Launch.Template, "TILE", 64)
				list = append(list, l)
			}
		case "transpose_2d_blocks":
			// One group of two simdgroups walks over all blocks, those of several matrices too.
			if l.Case == "1 of 96x128" || l.Case == "3 of 36x100" {
				l.Launch.Grid, l.Launch.Threadgroup = [3]int{64, 1, 1}, [3]int{64, 1, 1}
				setTemplate(l.Launch.Template, "BLOCKS_PER_ROW", 4)
				setTemplate(l.Launch.Template, "GROUP_SIZE", 64)
				list = append(list, l)
			}
		case "embedding", "embedding_keys", "embedding_runs", "embedding_backward_partial", "embedding_backward":
			// Fewer threads than there is work for and more, some of them too few for a row.
			if l.Case == "37 of 13x129" || l.Case == "1031 of 2x70" {
				for _, size := range [][2]int{{23, 7}, {1201, 65}} {
					l.Launch.Grid, l.Launch.Threadgroup = [3]int{size[0]}, [3]int{size[1]}
					list = append(list, l)
				}
			}
		case "rms_norm_backward_dw", "column_sum", "layer_norm_bwd_gamma_reduce":
			// Several columns a lane, in packs that are whole and not.
			if width := map[string]int{"37x129": 129, "6x128": 128}[l.Case]; width > 0 {
				const threads, columns = 256, 4
				l.Launch.Grid[0] = (width + 32*columns - 1) / (32 * columns) * threads
				setTemplate(l.Launch.Template, "VEC", columns)
				list = append(list, l)
			}
		}
	}
	return list
}

// setTemplate gives a template argument another value.
func setTemplate(args []mlxc.TemplateArg, name string, value int) {
	i := slices.IndexFunc(args, func(a mlxc.TemplateArg) bool { return a.Name == name })
	args[i].Value = value
}

// shareRows makes room for the sums of so many groups in the second output.
func shareRows(outputs []mlxc.Output, groups int) {
	shape := slices.Clone(outputs[1].Shape)
	if len(shape) > 1 { // there is a parameter
		shape[len(shape)-2] = groups
	}
	outputs[1].Shape = shape
}
