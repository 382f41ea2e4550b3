package customkernels

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/host"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// program is a kernel for one signature: template arguments, dtypes, and the size
// classes of the inputs, which decide how MLX declares them.
type program struct {
	text     string // what MLX generated
	library  *host.Library
	metadata []host.Metadata // of every input
}

// compile is a variable so that a test can see what it is given.
var compile = host.Compile

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
// the same program meet in host.Compile, which compiles once; on CUDA, MLX compiles. A
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

// The shapes for which MLX declares an input differently.
var scalarShape, smallShape, largeShape = []int{}, []int{1}, []int{inDevice}

// sizeClass is a shape for which MLX declares input i as it does for a.
func (k *Kernel) sizeClass(i int, a *mlxc.Array) []int {
	switch {
	case k.pads[i], k.source.Viewed[i] && k.source.Inputs[i].Space == msl.Device:
		return largeShape
	case a.NDim() == 0:
		return scalarShape
	case a.Size() < inDevice:
		return smallShape
	}
	return largeShape
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
	p.library, err = compiled(text, source, func(source string) (*host.Library, error) {
		return compile(context.Background(), source)
	})
	return k.locate(p.text, err)
}

// compiled is what compile makes of the source of a text. Where C++ finds no type for the two values of
// a conditional operator, they are given one.
func compiled[P any](text string, source *msl.HostSource, compile func(source string) (P, error)) (P, error) {
	var lines []int
	for {
		p, err := compile(source.Source)
		known := len(lines)
		var refused *host.CompileError
		if errors.As(err, &refused) {
			for _, m := range conditionalError.FindAllStringSubmatch(refused.Output, -1) {
				line, _ := strconv.Atoi(m[1])
				if line -= msl.HostLineShift; !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
		}
		if len(lines) == known {
			return p, err
		}
		if source, _ = msl.Host(text, lines...); source == nil {
			return p, err
		}
	}
}

// conditionalError is what g++ and clang say of two values that have no type in common.
var conditionalError = regexp.MustCompile(`(?m)^[^:\n]+\.cpp:(\d+):\d+: error: (?:operands to '\?:'|conditional expression is ambiguous|incompatible operand types)`)

// rewritten is the text that MLX generates for a launch, and what becomes of it.
func (k *Kernel) rewritten(l Launch, inputs []*mlxc.Array) (text string, source *msl.HostSource, err error) {
	if text, err = k.generate(l, inputs); err != nil {
		return "", nil, err
	}
	if source, err = msl.Host(text); err != nil {
		return "", nil, k.located(text, err)
	}
	return text, source, nil
}

// located puts an error about the generated text where it belongs in the shader files.
func (k *Kernel) located(text string, err error) error {
	var problem *msl.Error
	if errors.As(err, &problem) {
		if at, ok := k.parsed.Locate(text, problem.Line); ok {
			at.Column = problem.Column
			return &msl.Error{Position: at, Message: problem.Message}
		}
	}
	return fmt.Errorf("%s: %w", k.file, err)
}

var compilerLine = regexp.MustCompile(`(?m)^[^:\n]+\.cpp:(\d+):(\d+): (?:fatal )?error: (.*)$`)

// locate puts the compiler's errors where they belong in the shader files.
func (k *Kernel) locate(text string, err error) error {
	var refused *host.CompileError
	if !errors.As(err, &refused) {
		return err
	}
	var lines []string
	for _, m := range compilerLine.FindAllStringSubmatch(refused.Output, -1) {
		line, _ := strconv.Atoi(m[1])
		if at, ok := k.parsed.Locate(text, line-msl.HostLineShift); ok {
			lines = append(lines, fmt.Sprintf("%s:%d:%s: %s", at.File, at.Line, m[2], inMetal(m[3], text, line-msl.HostLineShift, m[2])))
		}
	}
	if len(lines) == 0 {
		// In MLX's signature or at link time: the compiler's own words.
		return fmt.Errorf("%s: %w", k.file, err)
	}
	const shown = 3
	if more := len(lines) - shown; more > 0 {
		lines = append(lines[:shown], fmt.Sprintf("(%d more)", more))
	}
	return errors.New(strings.Join(lines, "; "))
}

var word = regexp.MustCompile(`^\w+`)

// inMetal says of an error of the compiler at a line and column of the text what it means in Metal.
func inMetal(message, text string, line int, column string) string {
	switch {
	case strings.Contains(message, "not allowed in anonymous aggregate"):
		return message + ": g++ takes no half, bfloat or vector in a structure without a name; give it one, or set CXX=clang++"
	case !strings.Contains(message, "poisoned"): // metal_host.h says which words are
		return message
	}
	lines := strings.Split(text, "\n")
	at, _ := strconv.Atoi(column)
	if line < 1 || line > len(lines) || at < 1 || at > len(lines[line-1]) {
		return message
	}
	name := word.FindString(lines[line-1][at-1:])
	if name == "double" {
		return "Metal has no double: use float"
	}
	return "Metal has no " + name
}

// metadata tells which of an input's shape, strides and number of axes MLX passes,
// because the kernel's body names them.
func metadata(source *msl.HostSource, input string) host.Metadata {
	var m host.Metadata
	for _, b := range source.Buffers {
		switch b.Name {
		case input + "_shape":
			m |= host.Shape
		case input + "_strides":
			m |= host.Strides
		case input + "_ndim":
			m |= host.NDim
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
