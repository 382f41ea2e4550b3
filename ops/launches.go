package ops

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A CaseSet chooses the cases in which Launches shows the kernels.
type CaseSet int

// The sets of cases.
const (
	// RaggedCases are the shapes in which a kernel goes wrong if it does anywhere: one
	// element, widths and numbers of rows that fill no simdgroup, threadgroup or
	// vector, and more rows than threadgroups.
	RaggedCases CaseSet = iota
	// TypicalCases are one shape of each operation as training has it, in whole
	// threadgroups and vectors.
	TypicalCases
)

// A KernelLaunch is a launch of one of this package's kernels, as an operation makes
// it.
type KernelLaunch struct {
	Op      string // the operation, in small letters
	Case    string // the shape and what else there is to say, such as "37x129, no weight"
	DType   mlxc.DType
	Backend mlxc.Backend // selects the launch geometry
	Kernel  *customkernels.Kernel
	Launch  customkernels.Launch

	traced mlxc.Backend // Backend, but for launches that tests derive from it
	run    func(on target, dtype mlxc.DType)
	index  int // among the launches of run
}

// Name tells the launch from all others of its set.
func (l KernelLaunch) Name() string {
	return fmt.Sprintf("%s: %s %v %s %s", l.Op, l.Kernel.Name(), l.DType, l.Case, l.Backend)
}

// Inputs makes the inputs of the launch, random and the same at every call. They are
// lazy; what comes from another kernel of the operation needs the host executor.
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
				// Handles of its own: an operation, or its scope, frees what it made.
				found = append(found, a.Reshape(a.Shape()...).Keep())
			}
		}
		return placeholders(launch)
	})
	return found
}

// trace runs the case with something else in the place of Kernel.Launch: on the CPU,
// whatever the machine has, because the host executor runs every geometry.
func (l KernelLaunch) trace(intercept launchFunc) {
	if err := mlxc.WithDevice(mlxc.CPU, func() { l.run(target{backend: l.traced, intercept: intercept}, l.DType) }); err != nil {
		panic(err) // every build of MLX has the CPU
	}
}

// placeholders are outputs for who asks for nothing but shapes and dtypes.
func placeholders(l customkernels.Launch) []*mlxc.Array {
	outputs := make([]*mlxc.Array, len(l.Outputs))
	for i, o := range l.Outputs {
		outputs[i] = mlxc.Zeros(o.DType, o.Shape...)
	}
	return outputs
}

// Launches lists what the operations of this package launch for their gradients, in
// every dtype and in the geometry of every class of devices, so that a tool can
// check all kernels. A launch that several classes make alike is listed once, under
// the first, and so is one that an operation makes twice. Nothing is compiled or computed.
func Launches(set CaseSet) []KernelLaunch {
	var list []KernelLaunch
	for _, op := range operations {
		for _, c := range op.cases(set) {
			for _, dtype := range gradientDTypes {
				start := len(list)
				for _, d := range backends {
					l := KernelLaunch{Op: op.name, Case: c.name, DType: dtype, Backend: d, traced: d, run: c.run}
					l.trace(func(k *customkernels.Kernel, launch customkernels.Launch, _ []*mlxc.Array) []*mlxc.Array {
						l.Kernel, l.Launch = k, launch
						if !slices.ContainsFunc(list[start:], l.alike) {
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

// alike reports whether two launches of a case are the same, for two classes of devices or made twice
// for one.
func (l KernelLaunch) alike(other KernelLaunch) bool {
	again := l.index == other.index || l.traced == other.traced
	return again && l.Kernel == other.Kernel && reflect.DeepEqual(l.Launch, other.Launch)
}

// An operation says in which cases its kernels are checked.
type operation struct {
	name  string
	cases func(set CaseSet) []launchCase
}

// A launchCase launches kernels on inputs of its own.
type launchCase struct {
	name string
	run  func(on target, dtype mlxc.DType)
}

// operations has one entry for each operation with kernels.
var operations = []operation{
	{name: "rmsnorm", cases: rmsNormCases},
	{name: "rmsnorm_separate", cases: rmsNormSeparateCases},
	{name: "rmsnorm_residual", cases: rmsNormResidualCases},
	{name: "add_rmsnorm", cases: addRMSNormCases},
	{name: "layernorm", cases: layerNormCases},
	{name: "layernorm_separate", cases: layerNormSeparateCases},
	{name: "embedding", cases: embeddingCases},
	{name: "softmax", cases: softmaxCases},
	{name: "transpose2d", cases: transposeCases},
	{name: "cross_entropy", cases: crossEntropyCases},
	{name: "attention", cases: attentionCases},
}
