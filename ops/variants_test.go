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
		if l.Device != gpu.String() || l.Case != "37x129" && l.Case != "5x4099" {
			continue
		}
		switch l.Kernel.Name() {
		case "rms_norm_compute_rms_inv", "rms_norm_backward_dx":
			// Two groups share the rows, so each uses its slots again: with a last
			// simdgroup of one lane, and with as many simdgroups as there are slots.
			for _, threads := range []int{65, 1024} {
				v := l
				v.Device = "variant"
				v.Launch.Grid, v.Launch.Threadgroup = [3]int{2 * threads}, [3]int{threads}
				list = append(list, v)
			}
		case "rms_norm_backward_dw":
			// As many simdgroups as there are slots, and several columns a lane.
			const threads, columns = 1024, 4
			width := l.Launch.Outputs[0].Shape[0]
			v := l
			v.Device = "variant"
			v.Launch.Grid = [3]int{(width + 32*columns - 1) / (32 * columns) * threads}
			v.Launch.Threadgroup = [3]int{threads}
			v.Launch.Template = slices.Clone(l.Launch.Template)
			i := slices.IndexFunc(v.Launch.Template, func(a mlxc.TemplateArg) bool { return a.Name == "C" })
			v.Launch.Template[i].Value = columns
			list = append(list, v)
		}
	}
	return list
}
