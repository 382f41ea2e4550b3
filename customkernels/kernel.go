package customkernels

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/internal/ahead"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Kernel is a kernel function of a shader file, ready to be launched. It may be
// used by any number of goroutines.
type Kernel struct {
	name   string
	file   string
	parsed *msl.Kernel
	source msl.MLXSource
	pads   []bool // by input
	metal  *mlxc.MetalKernel

	mu       sync.Mutex
	programs map[string]*program         // by signature
	cuda     map[string]*mlxc.CUDAKernel // by signature, and how the threadgroups are filled
	spaces   map[string]spaces           // what the check of address spaces found, by signature
}

// Kernel prepares a function of the file. The empty name stands for the only one.
// Options give what Metal lets a program give when it makes a pipeline: the sizes of
// threadgroup arguments and the values of function constants.
func (l *Library) Kernel(name string, options ...Option) (*Kernel, error) {
	parsed, err := l.file.Kernel(name)
	if err != nil {
		return nil, fmt.Errorf("customkernels: Kernel: %w", err)
	}
	var values []msl.MLXOption
	for _, o := range options {
		v, err := o(parsed)
		if err != nil {
			return nil, fmt.Errorf("customkernels: %s: %s: %w", parsed.Pos, parsed.Name, err)
		}
		if v != nil {
			values = append(values, v)
		}
	}
	source := parsed.MLX(values...)
	if len(source.Unsized) > 0 {
		return nil, fmt.Errorf("customkernels: %s: %s: the threadgroup argument %s has no size: give it one with ThreadgroupSize, or as %[3]s=threadgroup:ELEMENTS in a launch description",
			parsed.Pos, parsed.Name, source.Unsized[0])
	}
	if len(source.Unset) > 0 {
		return nil, fmt.Errorf("customkernels: %s: %s: the function constant %s has no value: give it one with FunctionConstant, or as %[3]s=VALUE in a launch description",
			parsed.Pos, parsed.Name, source.Unset[0])
	}
	metal, err := mlxc.NewMetalKernel(mlxc.MetalKernelSource{
		Name:    parsed.Name + "_" + digest(source.Header, source.Body)[:8],
		Inputs:  source.InputNames,
		Outputs: source.OutputNames,
		Body:    source.Body,
		Header:  source.Header,

		AtomicOutputs: source.AtomicOutputs,
	})
	if err != nil {
		return nil, err
	}
	return &Kernel{
		name: parsed.Name, file: l.name, parsed: parsed, source: source, pads: pads(parsed, source.Inputs), metal: metal,
		programs: map[string]*program{}, cuda: map[string]*mlxc.CUDAKernel{}, spaces: map[string]spaces{},
	}, nil
}

// digest makes a kernel's name depend on its text: MLX caches compiled kernels by
// name.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return fmt.Sprintf("%x", sum[:8])
}

// Name returns the function's name.
func (k *Kernel) Name() string { return k.name }

// Launch describes one launch of a kernel.
type Launch struct {
	// Grid and Threadgroup count threads, as Metal's dispatchThreads does: the last
	// threadgroup of an axis is short if Grid is not a multiple. An axis that is left 0
	// counts as 1, but for Grid's first: with 0 there are no threads, nothing is run, and
	// InitValue has to say what the outputs are, unless they have no elements.
	// Groups of one thread leave most of a GPU idle.
	Grid, Threadgroup [3]int
	// Resident is how many threadgroups a core of a GPU is to hold at a time, which bounds the
	// registers that CUDA's compiler gives a thread; 0 leaves them to it. Elsewhere it means
	// nothing.
	Resident int
	// Template gives the function's template arguments, by name. Those that have a type, a number or
	// a truth value for a default may be left out.
	Template []mlxc.TemplateArg
	// Outputs describes the results, in the order of the function's writable buffers.
	Outputs []mlxc.Output
	// InitValue is what every element of every output is before the launch; nil
	// leaves them undefined.
	InitValue *float32
	// Undefined names writable buffers of which the kernel may leave elements undefined. It changes
	// nothing but Sanitize, which reports none of them as unwritten.
	Undefined []string
	// InOut is what writable buffers hold before the launch, by name, for a kernel that also
	// reads them. Shape and dtype are those of the buffer's output. MLX's custom kernels have no
	// such buffers: the checker alone runs these launches.
	InOut map[string]*mlxc.Array
}

// Limits of Metal, which hold on every device, so that a launch that works on one
// works on all.
const maxThreads = 1024

var launches atomic.Uint64

// Launches returns how many launches this process has added to graphs, so that a
// test can tell that kernels took part.
func Launches() uint64 { return launches.Load() }

// Launch adds a launch to the graph of the inputs, which are in the order of the
// function's read-only buffers, and returns its outputs. Nothing is computed yet;
// the first launch with new dtypes, template arguments or size classes of constant inputs
// (no axes, below eight elements, more) compiles the kernel.
//
// If it cannot work, every output carries the same error.
func (k *Kernel) Launch(l Launch, inputs ...*mlxc.Array) []*mlxc.Array {
	l = k.normalized(l)
	err := k.check(l, inputs)
	if err == nil && l.empty() {
		return l.untouched()
	}
	if add := ahead.Current(); add != nil && err == nil {
		return k.collect(add, l, inputs)
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
	launches.Add(1)
	return outputs
}

// normalized is the launch with what may be left out: axes, and template arguments with defaults.
func (k *Kernel) normalized(l Launch) Launch {
	for i := range 3 {
		if l.Grid[i] == 0 && i > 0 {
			l.Grid[i] = 1
		}
		if l.Threadgroup[i] == 0 {
			l.Threadgroup[i] = 1
		}
	}
	for _, p := range k.parsed.Template {
		if p.Default == "" {
			continue
		}
		value, ok := defaultArgument(p.Default)
		if ok && !slices.ContainsFunc(l.Template, func(a mlxc.TemplateArg) bool { return a.Name == p.Name }) {
			l.Template = append(slices.Clone(l.Template), mlxc.TemplateArg{Name: p.Name, Value: value})
		}
	}
	return l
}

// defaultArgument reads the default of a template parameter, if it is plain.
func defaultArgument(text string) (any, bool) {
	if d, ok := elementDTypes[text]; ok {
		return d, true
	}
	if n, err := strconv.ParseInt(text, 0, 32); err == nil {
		return int(n), true
	}
	return text == "true", text == "true" || text == "false"
}

// empty reports whether there is nothing to run: no threads, or nothing to write to.
// A kernel's text need not expect the latter.
func (l Launch) empty() bool { return l.Grid[0] == 0 || l.nothingToWrite() }

func (l Launch) nothingToWrite() bool {
	for _, o := range l.Outputs {
		if !slices.Contains(o.Shape, 0) {
			return false
		}
	}
	return true
}

// untouched is what an empty launch leaves: the initial values.
func (l Launch) untouched() []*mlxc.Array {
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

// execute gives the launch to the executor of the current stream.
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

// launchMetal is MLX's own custom kernel.
func (k *Kernel) launchMetal(l Launch, inputs []*mlxc.Array) ([]*mlxc.Array, error) {
	return k.metal.Apply(mlxc.KernelLaunch{
		Outputs: l.Outputs, Grid: l.Grid, Threadgroup: l.Threadgroup,
		Template: k.templateArgs(l), InitValue: l.InitValue,
	}, k.padded(inputs)...)
}

// inDevice is the least number of elements with which MLX puts an input in device memory; it
// puts smaller ones in constant memory, which is no place for what a kernel declares device.
const inDevice = 8

// pads reports for each input whether it is padded to stay in device memory: not if the kernel
// reads its shape, which would change.
func pads(parsed *msl.Kernel, inputs []*msl.Buffer) []bool {
	padded := make([]bool, len(inputs))
	for i, b := range inputs {
		padded[i] = b.Space == msl.Device &&
			!slices.ContainsFunc(parsed.Buffers, func(o *msl.Buffer) bool { return o.Implicit == b.Name })
	}
	return padded
}

func (k *Kernel) padded(inputs []*mlxc.Array) []*mlxc.Array {
	inputs = slices.Clone(inputs)
	for i, a := range inputs {
		if n := a.Size(); n < inDevice && k.pads[i] {
			inputs[i] = mlxc.Concatenate(0, a.Reshape(n), mlxc.Zeros(a.DType(), inDevice-n))
		}
	}
	return inputs
}

// templateArgs puts the arguments in the order of the function's parameters, under
// the names that MLX is given.
func (k *Kernel) templateArgs(l Launch) []mlxc.TemplateArg {
	args := make([]mlxc.TemplateArg, len(k.parsed.Template))
	for i, name := range k.source.TemplateNames {
		args[i] = mlxc.TemplateArg{Name: name, Value: k.templateValue(l, i)}
	}
	return args
}

// templateValue is the argument for the function's parameter i.
func (k *Kernel) templateValue(l Launch, i int) any {
	name := k.parsed.Template[i].Name
	return l.Template[slices.IndexFunc(l.Template, func(a mlxc.TemplateArg) bool { return a.Name == name })].Value
}
