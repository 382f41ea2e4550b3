package sanitizer

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// An Array is the content of a buffer, in row-major order and native byte order. The last axis of a texture is the
// components of a pixel: 1, 2 or 4. The axes before it are layers, depth, height and width, as far as the texture has them.
type Array struct {
	DType DType
	Shape []int // empty for an array without axes
	Data  []byte
}

// Values returns the elements as numbers. Elements of complex64 are their real parts, and integers above 2⁵³ are
// rounded.
func (a Array) Values() []float64 { return a.DType.values(a.Data) }

// Size returns the number of elements.
func (a Array) Size() int { return sizeOf(a.Shape) }

func sizeOf(shape []int) int {
	n := 1
	for _, length := range shape {
		n *= length
	}
	return n
}

// Output describes an output.
type Output struct {
	Shape []int
	DType DType
}

// A TemplateArg is a template argument: a DType, an int, a bool or, for kernels of LoadNative, an Expression.
type TemplateArg struct {
	Name  string
	Value any
}

// An Expression is a template argument as Metal writes it: a type such as "float4", a function, an enumerator.
type Expression string

// templateTexts returns the template arguments in Metal's words, by name.
func (l Launch) templateTexts() map[string]string {
	texts := map[string]string{}
	for _, a := range l.Template {
		texts[a.Name] = fmt.Sprint(a.Value)
		if d, ok := a.Value.(DType); ok {
			texts[a.Name] = d.native()
		}
	}
	return texts
}

// Launch describes one launch of a kernel.
type Launch struct {
	// Grid and Threadgroup count threads along each axis, as Metal's dispatchThreads does: the last threadgroup of an
	// axis is smaller if Grid is not a multiple of Threadgroup. A 0 counts as 1, except in Grid[0]. If Grid[0] is 0, no
	// thread runs, and InitValue or InOut must be set unless all outputs are empty.
	Grid, Threadgroup [3]int
	// Template holds the function's template arguments, by name. An argument may be omitted if the parameter's default
	// is a type, a number or a bool.
	Template []TemplateArg
	// Outputs describes the outputs, in the order of the function's writable buffers.
	Outputs []Output
	// InitValue is the value of every element of every output before the launch. If nil, outputs start undefined.
	InitValue *float32
	// Undefined names the outputs whose elements the kernel may leave undefined. The checker reports no unwritten
	// elements of these outputs.
	Undefined []string
	// InOut holds the content before the launch of outputs that the kernel also reads, by name, in the output's shape
	// and dtype.
	InOut map[string]Array
	// Expected holds the values of outputs after the launch, by name. Other values are a FindingWrongValue, unless
	// another error explains them.
	Expected map[string]Expected
}

// Kernel is a kernel function of a shader file. Any number of goroutines may use it.
type Kernel struct {
	loaded *shader.Kernel
	spaces spacesCache
}

// New returns a Kernel that checks k. It is for package customkernels only.
func New(k *shader.Kernel) *Kernel { return &Kernel{loaded: k} }

// Name returns the name of the function.
func (k *Kernel) Name() string { return k.loaded.Name }

// Inputs returns the names of the read-only buffers, in the order in which launches take them.
func (k *Kernel) Inputs() []string { return bufferNames(k.loaded.Source.Inputs) }

// Outputs returns the names of the writable buffers, in the order of Launch.Outputs.
func (k *Kernel) Outputs() []string { return bufferNames(k.loaded.Source.Outputs) }

func bufferNames(buffers []*msl.Buffer) []string {
	names := make([]string, len(buffers))
	for i, b := range buffers {
		names[i] = b.Name
	}
	return names
}

// FunctionConstants returns the names of the function constants.
func (k *Kernel) FunctionConstants() []string {
	names := make([]string, len(k.loaded.Parsed.Constants))
	for i, c := range k.loaded.Parsed.Constants {
		names[i] = c.Name
	}
	return names
}

// WithDefaults returns the launch with omitted axes set to 1 and omitted template arguments added.
func (k *Kernel) WithDefaults(l Launch) Launch {
	l.Grid, l.Threadgroup = shader.Axes(l.Grid, l.Threadgroup)
	if k.loaded.Native != nil {
		return l
	}
	for _, p := range k.loaded.Parsed.Template {
		value := defaultValue(p.Default)
		if value != nil && !slices.ContainsFunc(l.Template, func(a TemplateArg) bool { return a.Name == p.Name }) {
			l.Template = append(slices.Clone(l.Template), TemplateArg{Name: p.Name, Value: value})
		}
	}
	return l
}

// defaultValue returns the value of a template parameter's default: a DType, an int or a bool. It returns nil for any
// other text.
func defaultValue(text string) any {
	if d := dtypeOf(text); d != Invalid {
		return d
	}
	if n, err := strconv.ParseInt(text, 0, 32); err == nil {
		return int(n)
	}
	if text == "true" || text == "false" {
		return text == "true"
	}
	return nil
}

// MetalSource returns the Metal source that MLX generates for a launch on inputs of these shapes and dtypes, without
// MLX's prelude.
func (k *Kernel) MetalSource(l Launch, inputs ...Array) (string, error) {
	l = k.WithDefaults(l)
	if err := k.checkLaunch(l, inputs); err != nil {
		return "", err
	}
	if err := k.checkBuffers(l, inputs); err != nil {
		return "", err
	}
	if k.loaded.Native != nil {
		return "", fmt.Errorf("%s was loaded with LoadNative: MLX generates a source for kernels of Load", k.Name())
	}
	return k.text(l, inputs)
}

// text returns the text of a valid launch that includes its defaults: MLX's text, or a native kernel's own.
func (k *Kernel) text(l Launch, inputs []Array) (string, error) {
	if k.loaded.Native != nil {
		arguments, err := k.loaded.Arguments(l.templateTexts())
		if err != nil {
			return "", err
		}
		return k.loaded.Text(arguments)
	}
	return k.mlxText(l, inputs), nil
}

// mlxText returns the text that MLX generates for a valid launch.
func (k *Kernel) mlxText(l Launch, inputs []Array) string {
	template := make([]translate.MLXTemplateArgument, len(k.loaded.Parsed.Template))
	for i, p := range k.loaded.Parsed.Template {
		at := slices.IndexFunc(l.Template, func(a TemplateArg) bool { return a.Name == p.Name })
		template[i], _ = mlxTemplateArgument(l.Template[at]) // checked before
	}
	declared := make([]translate.MLXInput, len(inputs))
	for i, a := range inputs {
		shape := k.loaded.SizeClass(i, len(a.Shape), a.Size())
		declared[i] = translate.MLXInput{
			Type: dtypes[a.DType].metal, Scalar: len(shape) == 0,
			Small: sizeOf(shape) < shader.InDevice,
		}
	}
	outputs := make([]string, len(l.Outputs))
	for i, o := range l.Outputs {
		outputs[i] = dtypes[o.DType].metal
	}
	return k.loaded.Source.Text(k.loaded.ID, template, declared, outputs)
}
