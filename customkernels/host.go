package customkernels

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/executor"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// program is a kernel for one signature: template arguments, dtypes, and the size
// classes of the inputs, which decide how MLX declares them.
type program struct {
	text     string // what MLX generated
	library  *executor.Library
	metadata []executor.Metadata // of every input
}

// compile is a variable so that a test can see what it is given.
var compile = executor.Compile

// launchHost runs the kernel on the CPU as a lazy node.
func (k *Kernel) launchHost(l Launch, inputs []*mlxc.Array) ([]*mlxc.Array, error) {
	p, err := k.program(l, inputs)
	if err != nil {
		return nil, mlxc.NewError(k.name, err, inputs...)
	}
	prepare, run, release, ctx, err := p.library.NewLaunch(l.Grid, l.Threadgroup, p.metadata...)
	if err != nil {
		return nil, mlxc.NewError(k.name, err, inputs...)
	}
	return mlxc.NewHostFunction(mlxc.HostFunction{
		Name:    k.name,
		Prepare: prepare, Run: run, Release: release, Ctx: ctx,
		Outputs: l.Outputs, InitValue: l.InitValue,
	}, inputs...)
}

// program finds the program of a signature, or builds it.
func (k *Kernel) program(l Launch, inputs []*mlxc.Array) (*program, error) {
	return foundOrBuilt(k, k.programs, k.signature(make([]byte, 0, keySize), l, inputs), func() (*program, error) {
		p := &program{}
		return p, k.build(p, l, inputs)
	})
}

// keySize is enough for most keys of programs.
const keySize = 128

// foundOrBuilt is what programs has under the key, or what build gives.
//
// No lock is held while it is built: that takes MLX's graph lock, which the caller
// may hold already, inside a transform, and another caller not. Two that build
// the same program meet in executor.Compile, which compiles once; on CUDA, MLX compiles. A
// failure is not remembered: a compiler may be installed, a disk emptied.
func foundOrBuilt[P any](k *Kernel, programs map[string]*P, key []byte, build func() (*P, error)) (*P, error) {
	k.mu.Lock()
	p := programs[string(key)]
	k.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p, err := build()
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if first := programs[string(key)]; first != nil {
		return first, nil
	}
	programs[string(key)] = p
	return p, nil
}

// signature appends to key what decides on the text that MLX generates for a launch.
func (k *Kernel) signature(key []byte, l Launch, inputs []*mlxc.Array) []byte {
	for i := range k.parsed.Template {
		switch v := k.templateValue(l, i).(type) {
		case mlxc.DType:
			key = append(key, byte(v))
		case int:
			key = strconv.AppendInt(key, int64(v), 10)
		case bool:
			key = strconv.AppendBool(key, v)
		}
		key = append(key, ',')
	}
	for i, a := range inputs {
		class := k.sizeClass(i, a)
		key = append(key, byte(a.DType()), byte(len(class)))
		for _, n := range class {
			key = append(key, byte(n))
		}
	}
	for _, o := range l.Outputs {
		key = append(key, byte(o.DType))
	}
	return key
}

// sizeClass is a shape for which MLX declares input i as it does for a.
func (k *Kernel) sizeClass(i int, a *mlxc.Array) []int {
	return k.loaded.SizeClass(i, a.NDim(), a.Size())
}

// build generates, rewrites and compiles.
func (k *Kernel) build(p *program, l Launch, inputs []*mlxc.Array) error {
	text, source, err := k.rewritten(l, inputs)
	if err != nil {
		return err
	}
	p.text = text
	for _, name := range k.source.InputNames {
		p.metadata = append(p.metadata, metadata(source, name))
	}
	p.library, err = shader.Compile(text, source, func(source string) (*executor.Library, error) {
		return compile(context.Background(), source)
	})
	return k.loaded.LocatedCompileError(p.text, err)
}

// rewritten is the text that MLX generates for a launch, and what becomes of it.
func (k *Kernel) rewritten(l Launch, inputs []*mlxc.Array) (text string, source *translate.HostSource, err error) {
	if text, err = k.generate(l, inputs); err != nil {
		return "", nil, err
	}
	if source, err = translate.Host(text); err != nil {
		return "", nil, k.loaded.Located(text, err)
	}
	return text, source, nil
}

// metadata tells which of an input's shape, strides and number of axes MLX passes,
// because the kernel's body names them.
func metadata(source *translate.HostSource, input string) executor.Metadata {
	var m executor.Metadata
	for _, b := range source.Buffers {
		switch b.Name {
		case input + "_shape":
			m |= executor.Shape
		case input + "_strides":
			m |= executor.Strides
		case input + "_ndim":
			m |= executor.NDim
		}
	}
	return m
}

// generate has MLX write the Metal source of a launch, through its export.
func (k *Kernel) generate(l Launch, inputs []*mlxc.Array) (string, error) {
	// Stand-ins: the launch's own inputs may belong to a transform at work.
	var standIns []*mlxc.Array
	for i, a := range inputs {
		standIns = append(standIns, mlxc.Zeros(a.DType(), k.sizeClass(i, a)...))
	}
	l.Outputs = slices.Clone(l.Outputs)
	for i := range l.Outputs {
		l.Outputs[i].Shape = []int{1}
	}
	nodes, err := mlxc.Trace(func(args []*mlxc.Array) (outputs []*mlxc.Array) {
		var err error
		mlxc.WithPlaceholderGPU(func() { outputs, err = k.launchMetal(l, args) })
		if err != nil {
			return []*mlxc.Array{mlxc.InvalidArray(err)}
		}
		return outputs
	}, standIns)
	for _, a := range standIns {
		a.Free()
	}
	if err != nil {
		return "", err
	}
	for _, n := range nodes {
		if n.Primitive == "CustomKernel" && len(n.Strings) >= 2 {
			return n.Strings[1], nil
		}
	}
	return "", fmt.Errorf("MLX %s exported no custom kernel: its export format is not the one of the pinned version", mlxc.Version())
}

// MetalSource returns the Metal text that MLX generates for a launch on these
// inputs, complete but for MLX's own prelude. It is what Apple's compiler gets on
// an Apple GPU and what the host executor compiles on a CPU.
func (k *Kernel) MetalSource(l Launch, inputs ...*mlxc.Array) (string, error) {
	l = k.normalized(l)
	if err := k.check(l, inputs); err != nil {
		return "", err
	}
	return k.generate(l, inputs)
}
