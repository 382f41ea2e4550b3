package ops

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A CaseSet selects the shapes that KernelLaunches covers.
type CaseSet int

// The sets of cases.
const (
	// RaggedCases are the shapes that expose the bugs of a kernel: one element, widths and numbers of rows that do not
	// fill a simdgroup, a threadgroup or a vector, and more rows than threadgroups.
	RaggedCases CaseSet = iota
	// TypicalCases are one or a few shapes of each operation as in training. Most consist of whole vectors.
	TypicalCases
	// WarpgroupCases are launches in the geometry of NVIDIA GPUs of compute capability 9.0: of kernels that multiply
	// matrices with warpgroup instructions (wgmma), and of kernels with more than 48 KiB of threadgroup memory. The host
	// executor cannot run them.
	WarpgroupCases
)

// A KernelLaunch is a launch of one of this package's kernels, as an operation makes it. It is for tools that check
// kernels.
type KernelLaunch struct {
	Op      string // the operation, in lower case
	Case    string // the shape and options, such as "37x129, no weight"
	DType   mlxc.DType
	Backend mlxc.Backend // selects the launch geometry
	Kernel  *customkernels.Kernel
	Launch  customkernels.Launch

	traced     mlxc.Backend // the backend that run is called for; equals Backend, except in the tests' variants
	warpgroups bool         // the launch is one of WarpgroupCases
	run        func(on target, dtype mlxc.DType)
	index      int // position among the launches of run
	again      int // the number of earlier launches with this kernel and backend in the case
}

// Name identifies the launch in its set.
func (l KernelLaunch) Name() string {
	name := fmt.Sprintf("%s: %s %v %s %s", l.Op, l.Kernel.Name(), l.DType, l.Case, l.Backend)
	if l.again > 0 {
		name += fmt.Sprintf(" #%d", l.again+1)
	}
	return name
}

// Inputs returns the inputs of the launch. They are lazy and random, but the same at every call. The caller owns them.
// Evaluating an input that another kernel of the operation computes needs the host executor.
func (l KernelLaunch) Inputs() []*mlxc.Array {
	var found []*mlxc.Array
	at := -1
	l.trace(func(k *customkernels.Kernel, launch customkernels.Launch, inputs []*mlxc.Array) []*mlxc.Array {
		at++
		if at < l.index {
			return k.Launch(launch, inputs...)
		}
		if at == l.index {
			for _, a := range inputs {
				// A new handle, because the operation or its scope frees its own.
				found = append(found, a.Reshape(a.Shape()...).Keep())
			}
		}
		return placeholders(launch)
	})
	return found
}

// trace runs the case with intercept in place of Kernel.Launch. It runs on the CPU on every machine, because the host
// executor supports every geometry but that of GPUs with warpgroups.
func (l KernelLaunch) trace(intercept launchFunc) {
	on := target{backend: l.traced, warpgroups: l.warpgroups, intercept: intercept}
	err := mlxc.WithDevice(mlxc.CPU, func() { l.run(on, l.DType) })
	if err != nil {
		panic(err) // every build of MLX has the CPU
	}
}

// placeholders returns zero arrays with the launch's output shapes and dtypes, for tracing without computing.
func placeholders(l customkernels.Launch) []*mlxc.Array {
	outputs := make([]*mlxc.Array, len(l.Outputs))
	for i, o := range l.Outputs {
		outputs[i] = mlxc.Zeros(o.DType, o.Shape...)
	}
	return outputs
}

// KernelLaunches returns the launches of all operations, in every dtype and in the geometry of every backend. The list
// has no duplicates: a launch that several backends share is listed under the first of them, and a launch that an
// operation repeats is listed once. KernelLaunches compiles and computes nothing.
func KernelLaunches(set CaseSet) []KernelLaunch {
	backends, warpgroups := backends, set == WarpgroupCases
	if warpgroups {
		backends = []mlxc.Backend{mlxc.BackendCUDA}
	}
	var list []KernelLaunch
	for _, op := range operations {
		for _, c := range op.cases(set) {
			for _, dtype := range gradientDTypes {
				start := len(list)
				for _, b := range backends {
					l := KernelLaunch{
						Op: op.name, Case: c.name, DType: dtype, Backend: b, traced: b, warpgroups: warpgroups, run: c.run,
					}
					l.trace(func(k *customkernels.Kernel, launch customkernels.Launch, _ []*mlxc.Array) []*mlxc.Array {
						l.Kernel, l.Launch = k, launch
						if (launch.ThreadgroupMemory > 0) == warpgroups && !slices.ContainsFunc(list[start:], l.alike) {
							l.again = 0
							for _, other := range list[start:] {
								if other.Kernel == k && other.Backend == b {
									l.again++
								}
							}
							list = append(list, l)
						}
						l.index++
						return placeholders(launch)
					})
				}
			}
		}
	}
	return list
}

// alike reports whether two launches of a case have the same kernel and parameters, and also either the same position
// in the case, on two backends, or the same backend.
func (l KernelLaunch) alike(other KernelLaunch) bool {
	again := l.index == other.index || l.traced == other.traced
	return again && l.Kernel == other.Kernel && reflect.DeepEqual(l.Launch, other.Launch)
}

// An operation has a name and the cases in which its kernels are checked.
type operation struct {
	name  string
	cases func(set CaseSet) []launchCase
}

// A launchCase launches the kernels of an operation on inputs that it makes.
type launchCase struct {
	name string
	run  func(on target, dtype mlxc.DType)
}

// operations lists the operations with kernels.
var operations = []operation{
	{name: "rmsnorm", cases: rmsNormCases},
	{name: "rmsnorm_separate", cases: rmsNormSeparateCases},
	{name: "rmsnorm_residual", cases: rmsNormResidualCases},
	{name: "add_rmsnorm", cases: addRMSNormCases},
	{name: "layernorm", cases: layerNormCases},
	{name: "layernorm_separate", cases: layerNormSeparateCases},
	{name: "embedding", cases: embeddingCases},
	{name: "softmax", cases: softmaxCases},
	{name: "matmul", cases: matMulCases},
	{name: "transpose2d", cases: transposeCases},
	{name: "cross_entropy", cases: crossEntropyCases},
	{name: "attention", cases: attentionCases},
	{name: "gated_delta_rule", cases: gatedDeltaCases},
	{name: "ssm_scan", cases: ssmScanCases},
}
