package ops

import (
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A descriptor describes operations and their kernels for the tests of all kernels, which iterate over the descriptors.
// Each group of operations registers one in its <operation>_descriptor_test.go.
type descriptor struct {
	operations []string // names in the list operations; empty for kernels that several operations share
	kernels    []kernelTest
	traffic    func() []trafficCase
	gradients  func() []gradientBench // for BenchmarkGradients
	builds     func() []buildBench    // for BenchmarkBuild
}

// A kernelTest describes a kernel for the tests.
type kernelTest struct {
	name string
	// variants derives launches from one in Metal's geometry, or in the CPU's for a kernel that Metal does not use. The
	// kernel supports their geometries, but no backend uses them today.
	variants func(l KernelLaunch) []KernelLaunch
	// unused reports whether no operation launches the kernel on a backend in a dtype. It may be nil.
	unused func(b mlxc.Backend, dtype mlxc.DType) bool
	// sameHelpers says that another kernel of the file calls the file's helpers in the same way. Mutants of helpers are
	// not tried in this kernel.
	sameHelpers bool
}

var descriptors []descriptor

// describe registers a descriptor. It has a result so that the declaration of a package variable can call it.
func describe(d descriptor) struct{} {
	descriptors = append(descriptors, d)
	return struct{}{}
}

// onlyOn returns the field unused of a kernel that is launched on one backend alone.
func onlyOn(only mlxc.Backend) func(mlxc.Backend, mlxc.DType) bool {
	return func(b mlxc.Backend, _ mlxc.DType) bool { return b != only }
}

// notOn returns the field unused of a kernel that is launched on all backends but one.
func notOn(not mlxc.Backend) func(mlxc.Backend, mlxc.DType) bool {
	return func(b mlxc.Backend, _ mlxc.DType) bool { return b == not }
}

// kernelTestOf returns the entry of a kernel. It panics if there is none.
func kernelTestOf(name string) kernelTest {
	for _, d := range descriptors {
		for _, k := range d.kernels {
			if k.name == name {
				return k
			}
		}
	}
	panic("no descriptor has the kernel " + name)
}

// collect concatenates the results of one field of all descriptors. The field may be nil in some.
func collect[T any](part func(d descriptor) func() []T) (list []T) {
	for _, d := range descriptors {
		if f := part(d); f != nil {
			list = append(list, f()...)
		}
	}
	return list
}

// Every operation and every kernel of every shader file is in exactly one descriptor.
func TestDescriptorsAreComplete(t *testing.T) {
	files, err := fs.Glob(customkernels.Shaders(), "*.metal")
	require.NoError(t, err)
	var shipped, described, known, names []string
	for _, file := range files {
		lib, err := customkernels.Load(customkernels.Shaders(), file)
		require.NoError(t, err)
		shipped = append(shipped, lib.Names()...)
	}
	for _, d := range descriptors {
		for _, k := range d.kernels {
			described = append(described, k.name)
		}
		names = append(names, d.operations...)
	}
	for _, op := range operations {
		known = append(known, op.name)
	}
	require.ElementsMatch(t, shipped, described)
	require.ElementsMatch(t, known, names)
}

// Every kernel has launches in every dtype for the CPU and for Metal, in both sets of cases, unless its descriptor says
// that it is unused there.
func TestLaunchesHaveEveryKernel(t *testing.T) {
	var want []string
	tuned := []mlxc.Backend{mlxc.BackendCPU, mlxc.BackendMetal}
	for _, d := range descriptors {
		for _, k := range d.kernels {
			for _, dtype := range gradientDTypes {
				for _, b := range tuned {
					if k.unused == nil || !k.unused(b, dtype) {
						want = append(want, fmt.Sprintln(k.name, dtype, b))
					}
				}
			}
		}
	}
	for _, set := range []CaseSet{RaggedCases, TypicalCases} {
		var got []string
		for _, l := range KernelLaunches(set) {
			if slices.Contains(tuned, l.Backend) {
				got = append(got, fmt.Sprintln(l.Kernel.Name(), l.DType, l.Backend))
			}
		}
		slices.Sort(got)
		require.ElementsMatch(t, want, slices.Compact(got))
	}
}
