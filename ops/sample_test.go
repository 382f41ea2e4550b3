package ops

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// sampleDTypes returns the dtypes in which the i-th case of a test runs. In a full run these are all of gradientDTypes,
// otherwise one of them in turn. A test whose cases do not depend on the dtype passes a constant.
func sampleDTypes(i int) []mlxc.DType {
	if long.Full() {
		return gradientDTypes
	}
	i %= len(gradientDTypes)
	return gradientDTypes[i : i+1]
}

// inSample reports whether the i-th case of a test runs in dtype.
func inSample(i int, dtype mlxc.DType) bool { return slices.Contains(sampleDTypes(i), dtype) }

// sampleLaunches returns a part of the launches, in order. Compiling for the checker takes most of the time, so the
// sample has few instantiations of kernels: again and again the launch with the most new traits, until every trait is
// in the sample. To these it adds one in four of the further cases of kernels that an instantiation in the sample runs.
func sampleLaunches(launches []KernelLaunch) []KernelLaunch {
	known, variants, cases := map[string]bool{}, map[string]bool{}, map[string]bool{}
	taken := make([]bool, len(launches))
	for {
		best, most := -1, 0
		for i, l := range launches {
			if n := countNew(known, launchTraits(l)); n > most {
				best, most = i, n
			}
		}
		if best < 0 {
			break
		}
		l := launches[best]
		for _, trait := range launchTraits(l) {
			known[trait] = true
		}
		taken[best], variants[launchVariant(l)], cases[l.Kernel.Name()+" "+l.Case] = true, true, true
	}
	var sample []KernelLaunch
	further := 0
	for i, l := range launches {
		if name := l.Kernel.Name() + " " + l.Case; !taken[i] && variants[launchVariant(l)] && !cases[name] {
			cases[name] = true
			taken[i] = further%4 == 0
			further++
		}
		if taken[i] {
			sample = append(sample, l)
		}
	}
	return sample
}

// countNew returns the number of names that are not known.
func countNew(known map[string]bool, names []string) int {
	n := 0
	for _, name := range names {
		if !known[name] {
			n++
		}
	}
	return n
}

// launchTraits returns the traits that a sample of launches must cover: the kernel, the operation on the backend, and
// the template arguments.
func launchTraits(l KernelLaunch) []string {
	traits := []string{l.Kernel.Name(), l.Op + " on " + string(l.Backend)}
	for _, a := range l.Launch.Template {
		traits = append(traits, fmt.Sprintf("%s=%v", a.Name, a.Value))
	}
	return traits
}

// launchVariant identifies the instantiation of a kernel.
func launchVariant(l KernelLaunch) string { return fmt.Sprint(l.Kernel.Name(), l.Launch.Template) }

func TestSampleOfLaunches(t *testing.T) {
	all := KernelLaunches(RaggedCases)
	all = append(all, variants(all)...)
	reached := func(launches []KernelLaunch) []string {
		traits := map[string]bool{}
		for _, l := range launches {
			for _, trait := range append(launchTraits(l), l.DType.String()) {
				traits[trait] = true
			}
		}
		return slices.Sorted(maps.Keys(traits))
	}
	all = slices.DeleteFunc(all, func(l KernelLaunch) bool { return l.DType != shortDType[l.Backend] })
	sample := sampleLaunches(all)
	require.Equal(t, reached(all), reached(sample))
	require.Less(t, 2*len(sample), len(all))

	for i := range 6 {
		require.Len(t, sampleDTypes(i), map[bool]int{true: 3, false: 1}[long.Full()])
		require.True(t, inSample(i, gradientDTypes[i%3]))
	}
}
