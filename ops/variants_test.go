package ops

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// variantGeometry is the Backend of launches whose geometry no backend has.
const variantGeometry mlxc.Backend = "variant"

// variants returns the variants of the launches that the kernels' descriptors define. A kernel's documentation allows
// more geometries than the backends use today. Because tests check them, a tuning table can change without a change of
// the shader.
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

// setPartialSums makes room for the partial sums of `threadgroups` threadgroups in the second output. Without a weight
// that output has none.
func (l *KernelLaunch) setPartialSums(threadgroups int) {
	shape := slices.Clone(l.Launch.Outputs[1].Shape)
	if len(shape) > 1 {
		shape[len(shape)-2] = threadgroups
	}
	l.Launch.Outputs[1].Shape = shape
}

// twoGroups returns variants whose two threadgroups share the rows, so that each uses its threadgroup memory again:
// with three simdgroups, with the largest threadgroup, with fewer threads than a row of whole vectors needs, and with
// more threads than vectors.
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

// rowVariants returns the variants of twoGroups for a kernel that accepts any number of threads.
func rowVariants(l KernelLaunch) []KernelLaunch { return twoGroups(l, nil) }

// forwardVariants returns the variants of twoGroups for a kernel that only CPUs run, with the vectors of a GPU.
func forwardVariants(l KernelLaunch) []KernelLaunch {
	return twoGroups(l, func(v *KernelLaunch, _ int) { v.setTemplate("VEC", 4) })
}

// fusedNormVariants returns the variants of twoGroups for a norm's fused backward kernel, without the ones whose threads
// do not hold a row, and a variant that copies rows of two vectors per thread to threadgroup memory.
func fusedNormVariants(l KernelLaunch) []KernelLaunch {
	list := twoGroups(l, func(v *KernelLaunch, _ int) { v.setPartialSums(2) })
	list = slices.DeleteFunc(list, func(v KernelLaunch) bool { return v.Launch.Threadgroup[0] == 5 })
	if l.Case != "6x128" {
		return list
	}
	return append(list, l.variant(func(v *KernelLaunch) {
		const threads = 32
		v.setGrid(2, threads)
		v.setPartialSums(2)
		v.setTemplate("VEC", 2)
		v.setTemplate("VECS_PER_THREAD", 4)
		v.setTemplate("COPY_THREADS", threads)
	}))
}

// statisticsVariants returns a variant with one threadgroup of the largest size. It processes two of three rows in one
// step and the last row in a second step.
func statisticsVariants(l KernelLaunch) []KernelLaunch {
	if l.Case != "3x8209" {
		return nil
	}
	return []KernelLaunch{l.variant(func(v *KernelLaunch) {
		v.setGrid(1, 1024)
		v.setTemplate("ROWS_PER_STEP", 2)
	})}
}

// columnsVariants returns a variant with two threadgroups that share the rows of a block of columns.
func columnsVariants(l KernelLaunch) []KernelLaunch {
	if l.Case != "3x8209" {
		return nil
	}
	return []KernelLaunch{l.variant(func(v *KernelLaunch) {
		v.Launch.Grid[1] = 2
		v.setPartialSums(2)
	})}
}

// columnSumVariants returns variants with several columns per lane, in whole vectors or with a short last vector.
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
