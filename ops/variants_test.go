package ops

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// variantGeometry takes the place of the backend in launches whose geometry no backend has.
const variantGeometry mlxc.Backend = "variant"

// variants returns the variants of the launches that the kernels' descriptors define. A kernel's documentation allows
// more geometries than the tables use today. Checking them lets a table change without a change of the shader.
func variants(launches []KernelLaunch) []KernelLaunch {
	var list []KernelLaunch
	for _, l := range launches {
		k := kernelTestOf(l.Kernel.Name())
		base := mlxc.BackendMetal
		if k.unused != nil && k.unused(base, l.DType) {
			base = mlxc.BackendCPU
		}
		if k.variants != nil && l.Backend == base {
			list = append(list, k.variants(l)...)
		}
	}
	return list
}

// variant returns a copy of the launch for which change has been called.
func (l KernelLaunch) variant(change func(v *KernelLaunch)) KernelLaunch {
	l.Backend = variantGeometry
	l.Launch.Template = slices.Clone(l.Launch.Template)
	l.Launch.Outputs = slices.Clone(l.Launch.Outputs)
	change(&l)
	return l
}

// setTemplate gives a template argument another value. It panics if there is no such argument.
func (l *KernelLaunch) setTemplate(name string, value int) {
	i := slices.IndexFunc(l.Launch.Template, func(a mlxc.TemplateArg) bool { return a.Name == name })
	l.Launch.Template[i].Value = value
}

// setGrid sets the number of threadgroups and the threads of each, along one axis.
func (l *KernelLaunch) setGrid(threadgroups, threads int) {
	l.Launch.Grid, l.Launch.Threadgroup = [3]int{threadgroups * threads}, [3]int{threads}
}

// setPartialSums makes room for the sums of so many threadgroups in the second output, which holds none without a
// weight.
func (l *KernelLaunch) setPartialSums(threadgroups int) {
	shape := slices.Clone(l.Launch.Outputs[1].Shape)
	if len(shape) > 1 {
		shape[len(shape)-2] = threadgroups
	}
	l.Launch.Outputs[1].Shape = shape
}

// twoGroups returns variants whose two threadgroups share the rows, so that each uses its threadgroup memory again:
// with three simdgroups, with the largest threadgroup, with fewer threads than hold a row of whole packs, and with
// more threads than packs.
func twoGroups(l KernelLaunch, change func(v *KernelLaunch, threads int)) (list []KernelLaunch) {
	for _, threads := range map[string][]int{"37x129": {96, 1024}, "6x128": {5, 96}}[l.Case] {
		list = append(list, l.variant(func(v *KernelLaunch) {
			v.setGrid(2, threads)
			if change != nil {
				change(v, threads)
			}
		}))
	}
	return list
}

// rowVariants are twoGroups of kernels that accept any number of threads.
func rowVariants(l KernelLaunch) []KernelLaunch { return twoGroups(l, nil) }

// fusedNormVariants are twoGroups of a norm's fused backward kernel, whose threads must hold a row.
func fusedNormVariants(l KernelLaunch) []KernelLaunch {
	list := twoGroups(l, func(v *KernelLaunch, _ int) { v.setPartialSums(2) })
	return slices.DeleteFunc(list, func(v KernelLaunch) bool { return v.Launch.Threadgroup[0] == 5 })
}

// statisticsVariants have one threadgroup of the largest size, which takes two rows at a time and then the last.
func statisticsVariants(l KernelLaunch) []KernelLaunch {
	if l.Case != "3x8209" {
		return nil
	}
	return []KernelLaunch{l.variant(func(v *KernelLaunch) {
		v.setGrid(1, 1024)
		v.setTemplate("ROWS_PER_STEP", 2)
	})}
}

// columnsVariants have two threadgroups that share the rows of a block of columns.
func columnsVariants(l KernelLaunch) []KernelLaunch {
	if l.Case != "3x8209" {
		return nil
	}
	return []KernelLaunch{l.variant(func(v *KernelLaunch) {
		v.Launch.Grid[1] = 2
		v.setPartialSums(2)
	})}
}

// columnSumVariants have several columns per lane, in packs that are whole or cut off by the last column.
func columnSumVariants(l KernelLaunch) []KernelLaunch {
	width := map[string]int{"37x129": 129, "6x128": 128}[l.Case]
	if width == 0 {
		return nil
	}
	return []KernelLaunch{l.variant(func(v *KernelLaunch) {
		const threads, columns = 256, 4
		v.Launch.Grid[0] = ceilDiv(width, 32*columns) * threads
		v.setTemplate("VEC", columns)
	})}
}
