package ops

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// variants are launches in geometries that no table has today and the kernels are
// right in, because their texts promise it: what a table's next entry may reach.
func variants(launches []KernelLaunch) []KernelLaunch {
	var list []KernelLaunch
	for _, l := range launches {
		cases := []string{"37x129", "6x128", "2 of 37x129", "1 of 130x70", "37 of 13x129", "1031 of 2x70"}
		if l.Device != apple.String() || !slices.Contains(cases, l.Case) {
			continue
		}
		width := 129
		if l.Case == "6x128" {
			width = 128
		}
		switch l.Kernel.Name() {
		case "rms_norm_compute_rms_inv", "rms_norm_backward_dx", "rms_norm_backward", "rms_norm_backward_statistics",
			"rms_norm_residual", "add_rms_norm", "softmax_backward", "layer_norm_backward", "layer_norm_bwd_input",
			"cross_entropy_fwd_bwd", "cross_entropy_forward", "cross_entropy_backward":
			// Two groups share the rows, so each uses its slots again: with a last
			// simdgroup of one lane, and with as many simdgroups as there are slots. Rows of
			// whole packs with too few threads to hold them, where a kernel allows that, and
			// with more threads than packs.
			sizes := []int{65, 1024}
			if width == 128 {
				sizes = []int{5, 65}
				if name := l.Kernel.Name(); name == "rms_norm_backward" || name == "layer_norm_backward" {
					sizes = []int{65}
				}
			}
			for _, threads := range sizes {
				v := l
				v.Device = "variant"
				v.Launch.Grid, v.Launch.Threadgroup = [3]int{2 * threads}, [3]int{threads}
				switch l.Kernel.Name() {
				case "rms_norm_backward":
					v.Launch.Outputs = slices.Clone(l.Launch.Outputs)
					v.Launch.Outputs[1].Shape = []int{2, width}
				case "layer_norm_backward":
					v.Launch.Outputs = slices.Clone(l.Launch.Outputs)
					v.Launch.Outputs[1].Shape = []int{2, 2, width}
				}
				list = append(list, v)
			}
		case "transpose_2d":
			// One group of two simdgroups walks over all tiles of both matrices; floats in
			// tiles as wide as those of halves.
			v := l
			v.Device = "variant"
			v.Launch.Grid, v.Launch.Threadgroup = [3]int{64, 1, 1}, [3]int{64, 1, 1}
			v.Launch.Template = slices.Clone(l.Launch.Template)
			for i, a := range v.Launch.Template {
				if a.Name == "N" || a.Name == "E" {
					v.Launch.Template[i].Value = 64
				}
			}
			list = append(list, v)
		case "embedding", "embedding_keys", "embedding_runs", "embedding_backward_partial", "embedding_backward":
			// Fewer threads than there is work for and more, some of them too few for a row.
			for _, size := range [][2]int{{23, 7}, {1201, 65}} {
				v := l
				v.Device = "variant"
				v.Launch.Grid, v.Launch.Threadgroup = [3]int{size[0]}, [3]int{size[1]}
				list = append(list, v)
			}
		case "rms_norm_backward_dw", "column_sum", "layer_norm_bwd_gamma_reduce":
			// Several columns a lane.
			const threads, columns = 256, 4
			v := l
			v.Device = "variant"
			v.Launch.Grid[0] = (width + 32*columns - 1) / (32 * columns) * threads
			v.Launch.Template = slices.Clone(l.Launch.Template)
			i := slices.IndexFunc(v.Launch.Template, func(a mlxc.TemplateArg) bool { return a.Name == "C" })
			v.Launch.Template[i].Value = columns
			list = append(list, v)
		}
	}
	return list
}
