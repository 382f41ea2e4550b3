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
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Kernel is a kernel function of a shader file, ready to be launched. It may be
// used by any number of goroutines.
type Kernel struct {
	name      string
	parsed    *msl.Kernel
	source    translate.MLXSource
	loaded    *shader.Kernel
	sanitizer *sanitizer.Kernel
	metal     *mlxc.MetalKernel

	mu       sync.Mutex
	programs map[string]*program         // by signature
	cuda     map[string]*mlxc.CUDAKernel // by signature, and how the threadgroups are filled
}

// Kernel prepares a function of the file. The empty name stands for the only one.
// Options give what Metal lets a program give when it makes a pipeline: the sizes of
// threadgroup arguments and the values of function constants.
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
	return &Kernel{
		name: loaded.Name, parsed: loaded.Parsed, source: source, loaded: loaded, sanitizer: sanitizer.New(loaded), metal: metal,
		programs: map[string]*program{}, cuda: map[string]*mlxc.CUDAKernel{},
	}, nil
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
	l.Grid, l.Threadgroup = shader.Axes(l.Grid, l.Threadgroup)
	for _, p := range k.parsed.Template {
		value := sanitizer.Default(p.Default)
		if d, ok := value.(sanitizer.DType); ok {
			value = mlxc.DType(d)
		}
		if value != nil && !slices.ContainsFunc(l.Template, func(a mlxc.TemplateArg) bool { return a.Name == p.Name }) {
			l.Template = append(slices.Clone(l.Template), mlxc.TemplateArg{Name: p.Name, Value: value})
		}
	}
	return l
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

// padded pads inputs that the kernel declares device to the size with which MLX puts them there.
func (k *Kernel) padded(inputs []*mlxc.Array) []*mlxc.Array {
	inputs = slices.Clone(inputs)
	for i, a := range inputs {
		if n := a.Size(); n < shader.InDevice && k.loaded.Pads[i] {
			inputs[i] = mlxc.Concatenate(0, a.Reshape(n), mlxc.Zeros(a.DType(), shader.InDevice-n))
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
