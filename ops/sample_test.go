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

// sampleDTypes returns the dtypes in which the i-th case of a test runs: all of gradientDTypes in a full run,
// otherwise one of them, in turn. A test whose cases differ in nothing that depends on the dtype passes a constant.
func sampleDTypes(i int) []mlxc.DType {
	if long.Full() {
		return gradientDTypes
	}
	i %= len(gradientDTypes)
	return gradientDTypes[i : i+1]
}

// inSample reports whether the i-th case of a test runs in dtype.
func inSample(i int, dtype mlxc.DType) bool { return slices.Contains(sampleDTypes(i), dtype) }

// sampleLaunches returns a part of the launches, in order. Compiling for the checker takes most of the time, so it
// takes variants of kernels first: each that has a new trait. Then it takes each case of a kernel once, if one of these
// variants runs it.
func sampleLaunches(launches []KernelLaunch) []KernelLaunch {
	traits, variants, cases := map[string]bool{}, map[string]bool{}, map[string]bool{}
	isNew := func(known map[string]bool, name string) bool {
		was := known[name]
		known[name] = true
		return !was
	}
	taken := make([]bool, len(launches))
	for i, l := range launches {
		for _, trait := range launchTraits(l) {
			taken[i] = isNew(traits, trait) || taken[i]
		}
		if taken[i] {
			variants[launchVariant(l)] = true
			cases[l.Kernel.Name()+" "+l.Case] = true
		}
	}
	var sample []KernelLaunch
	for i, l := range launches {
		if taken[i] || variants[launchVariant(l)] && isNew(cases, l.Kernel.Name()+" "+l.Case) {
			sample = append(sample, l)
		}
	}
	return sample
}

// launchTraits returns the traits that a sample of launches must have: every kernel, every operation for every class of
// devices, and every template argument.
func launchTraits(l KernelLaunch) []string {
	traits := []string{l.Kernel.Name(), l.Op + " on " + string(l.Backend)}
	for _, a := range l.Launch.Template {
		traits = append(traits, fmt.Sprintf("%s=%v", a.Name, a.Value))
	}
	return traits
}

// launchVariant tells the variants of kernels apart by what is compiled for them.
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
