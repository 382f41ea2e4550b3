package customkernels

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/ahead"
	"github.com/mlxgrad/mlxgrad/internal/recipe"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A Kernel is a kernel function of a shader file. Any number of goroutines may use it.
type Kernel struct {
	name      string
	parsed    *msl.Kernel
	source    translate.MLXSource
	loaded    *shader.Kernel
	sanitizer *sanitizer.Kernel
	metal     *mlxc.MetalKernel
	defaults  []mlxc.TemplateArg // template arguments that a launch may omit

	mu       sync.Mutex
	programs map[string]*program         // by signature
	cuda     map[string]*mlxc.CUDAKernel // by cudaKey
}

// Kernel returns a function of the file. The empty name selects the only function. The options set the sizes of
// threadgroup arguments and the values of function constants, which a Metal program sets when it makes a pipeline.
//
// The error is for an unknown name, an option that does not fit the function, or a threadgroup argument or function
// constant without a value.
func (l *Library) Kernel(name string, options ...Option) (*Kernel, error) {
	loaded, err := l.file.Kernel(name, options...)
	if err != nil {
		return nil, fmt.Errorf("customkernels: %w", err)
	}
	source := loaded.Source
	metal, err := mlxc.NewMetalKernel(mlxc.MetalKernelSource{
		Name:    loaded.ID,
		Inputs:  source.InputNames,
		Outputs: source.OutputNames,
		Body:    source.Body,
		Header:  source.Header,

		AtomicOutputs: source.AtomicOutputs,
	})
	if err != nil {
		return nil, err
	}
	k := &Kernel{
		name: loaded.Name, parsed: loaded.Parsed, source: source, loaded: loaded, sanitizer: sanitizer.New(loaded),
		metal:    metal,
		programs: map[string]*program{}, cuda: map[string]*mlxc.CUDAKernel{},
	}
	k.defaults = fromTemplate(k.sanitizer.WithDefaults(sanitizer.Launch{}).Template)
	return k, nil
}

// Name returns the function's name.
func (k *Kernel) Name() string { return k.name }

// FloatProducts selects how NVIDIA GPUs multiply float32 matrices.
type FloatProducts int

// The ways to multiply float32 matrices, by increasing time and accuracy.
const (
	// DefaultProducts are in TF32 if mlxc.TF32Enabled reports true, otherwise SplitProducts.
	DefaultProducts FloatProducts = iota
	// SplitProducts are sums of three products of TF32 parts. They are exact to 2⁻²².
	SplitProducts
	// FullSplitProducts also add the fourth product, of the small parts.
	FullSplitProducts
	// FMAProducts are computed by fma, without tensor cores. They have the accuracy of float32.
	FMAProducts
)

// Launch describes one launch of a kernel.
type Launch struct {
	// Grid and Threadgroup count threads along each axis, as Metal's dispatchThreads does: the last threadgroup of an
	// axis is smaller if Grid is not a multiple of Threadgroup. A 0 counts as 1, except in Grid[0]. If Grid[0] is 0, no
	// thread runs, and InitValue must be set unless all outputs are empty. Small threadgroups leave most of a GPU idle.
	Grid, Threadgroup [3]int
	// MinGroupsPerCore is the least number of threadgroups that must fit on a multiprocessor of an NVIDIA GPU at the
	// same time: minBlocksPerMultiprocessor of __launch_bounds__. It limits the registers per thread. 0 sets no limit.
	// Other devices ignore it.
	MinGroupsPerCore int
	// ThreadgroupMemory is the size in bytes of the kernel's threadgroup variables on an NVIDIA GPU, if they exceed
	// 48 KiB. Each variable takes a multiple of 1024 bytes. 0 leaves the size to the compiler. Other devices ignore it.
	ThreadgroupMemory int
	// AlignedInputs makes the address of every input of more than 8 bytes a multiple of 16 on an NVIDIA GPU. An input at
	// another address, such as a view of an array, is copied at each launch. Kernels in exported graphs read inputs where
	// they are. Other devices ignore it.
	AlignedInputs bool
	// StartsEarly lets the launch start before the end of the launch whose results it reads. The kernel waits for that
	// end before it accesses memory, so results do not change. This saves time if the kernel is short. It applies to
	// NVIDIA GPUs of compute capability 9.0 and later with MLX 0.32.4, CUDA graphs and a driver for CUDA 12.3 or later,
	// in the graphs that package ops records, if no other operation is between the two launches. Kernels that read
	// shapes or strides ignore it.
	StartsEarly bool
	// Products selects how NVIDIA GPUs multiply float32 matrices. Other devices ignore it.
	Products FloatProducts
	// Template holds the function's template arguments, by name. An argument may be omitted if the parameter's default
	// is a type, a number or a bool.
	Template []mlxc.TemplateArg
	// Outputs describes the outputs, in the order of the function's writable buffers.
	Outputs []mlxc.Output
	// InitValue is the value of every element of every output before the launch. If nil, outputs start undefined.
	InitValue *float32
	// Undefined names the outputs whose elements the kernel may leave undefined. Only Sanitize reads it: it reports no
	// unwritten elements of these outputs.
	Undefined []string
	// InOut holds the content before the launch of outputs that the kernel also reads, by name, in the output's shape
	// and dtype. MLX's custom kernels have no such outputs, so only Sanitize runs these launches.
	InOut map[string]*mlxc.Array
	// Expected holds the values of outputs after the launch, by name. Only Sanitize reads it.
	Expected map[string]sanitizer.Expected
}

var launchCount atomic.Uint64

// LaunchCount returns the number of launches that this process has added to graphs. Tests use it to check that an
// operation launched a kernel.
func LaunchCount() uint64 { return launchCount.Load() + recipe.Launches() }

// Launch adds a launch to the graph of its inputs and returns its outputs, without computing them. The inputs are in
// the order of the function's read-only buffers. On a CPU and on an NVIDIA GPU, a first launch with new dtypes,
// template arguments or size classes of inputs (no axes, fewer than 8 elements, 8 or more) compiles the kernel. On an
// Apple GPU, MLX compiles it at its first evaluation, and on an NVIDIA GPU, too, if it reads shapes or strides.
//
// If the launch is invalid, or if Launch compiles the kernel and fails, every output carries the same error.
//
// If the environment variable MLXGRAD_CHECKED is 1 when the process starts, Launch first runs the launch like
// [Kernel.Sanitize], which evaluates the inputs. Every output then carries the first error that the checker finds. A
// launch that cannot be checked, as in a compiled function, is an error. docs/sanitize.md gives the cost.
func (k *Kernel) Launch(l Launch, inputs ...*mlxc.Array) []*mlxc.Array {
	l = k.withDefaults(l)
	err := k.check(l, inputs)
	if err == nil && l.hasNoWork() {
		return l.initialOutputs()
	}
	if add := ahead.Current(); add != nil && err == nil {
		return k.collect(add, l, inputs)
	}
	if err == nil {
		err = k.checked(l, inputs)
	}
	var outputs []*mlxc.Array
	if err == nil {
		outputs, err = k.execute(l, inputs)
	}
	if err != nil {
		outputs = make([]*mlxc.Array, len(k.source.Outputs))
		for i := range outputs {
			outputs[i] = mlxc.InvalidArray(err)
		}
		return outputs
	}
	launchCount.Add(1)
	return outputs
}

// withDefaults sets omitted axes to 1 and adds omitted template arguments.
func (k *Kernel) withDefaults(l Launch) Launch {
	l.Grid, l.Threadgroup = shader.Axes(l.Grid, l.Threadgroup)
	for _, d := range k.defaults {
		if !slices.ContainsFunc(l.Template, func(a mlxc.TemplateArg) bool { return a.Name == d.Name }) {
			l.Template = append(slices.Clone(l.Template), d)
		}
	}
	return l
}

// hasNoWork reports whether a launch has no threads or only empty outputs. Kernels need not handle empty outputs.
func (l Launch) hasNoWork() bool {
	return l.Grid[0] == 0 || !slices.ContainsFunc(l.Outputs,
		func(o mlxc.Output) bool { return !slices.Contains(o.Shape, 0) })
}

// initialOutputs returns the outputs before a launch: InitValue everywhere.
func (l Launch) initialOutputs() []*mlxc.Array {
	var value float32
	if l.InitValue != nil {
		value = *l.InitValue
	}
	initial := mlxc.Scalar(value)
	defer initial.Free()
	outputs := make([]*mlxc.Array, len(l.Outputs))
	for i, o := range l.Outputs {
		outputs[i] = mlxc.Full(o.DType, initial, o.Shape...)
	}
	return outputs
}

// execute passes the launch to the executor of the current stream.
func (k *Kernel) execute(l Launch, inputs []*mlxc.Array) ([]*mlxc.Array, error) {
	switch mlxc.CurrentBackend() {
	case mlxc.BackendMetal:
		return k.launchMetal(l, inputs)
	case mlxc.BackendCUDA:
		return k.launchCUDA(l, inputs)
	case mlxc.BackendCPU:
		return k.launchHost(l, inputs)
	}
	return nil, mlxc.NewError(k.name, errNoExecutor, inputs...)
}
