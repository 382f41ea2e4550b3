package sanitizer

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/python"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// A PythonFile holds the calls of mx.fast.metal_kernel in a Python file. No Python runs: the arguments must be literals,
// constants of the module, or f-strings without substitutions.
type PythonFile struct {
	name  string
	calls []python.Call
	lines []int // offset of each line of the file
}

// LoadPython finds the calls of mx.fast.metal_kernel in a Python file.
func LoadPython(name string, src []byte) *PythonFile {
	f := &PythonFile{name: name, calls: python.Calls(name, string(src)), lines: []int{0}}
	for i, c := range src {
		if c == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	return f
}

// Names returns the names of the kernels in the order of the file. A call without a readable name has the name of its
// line, such as "line 12".
func (f *PythonFile) Names() []string {
	names := make([]string, len(f.calls))
	for i, c := range f.calls {
		if names[i] = c.Name; c.Name == "" {
			names[i] = fmt.Sprintf("line %d", c.Pos.Line)
		}
	}
	return names
}

// Problem returns the reason why a kernel cannot run, or nil: arguments that only Python can compute, or two calls with
// one name.
func (f *PythonFile) Problem(name string) error {
	_, err := f.find(name)
	return err
}

func (f *PythonFile) find(name string) (python.Call, error) {
	names := f.Names()
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	i := slices.Index(names, name)
	switch {
	case name == "":
		return python.Call{}, msl.Errorf(msl.Position{File: f.name}, "the file has several kernels; choose one of %s",
			strings.Join(names, ", "))
	case i < 0:
		return python.Call{}, msl.Errorf(msl.Position{File: f.name}, "the file has no kernel %q; it has %s", name,
			strings.Join(names, ", "))
	case f.calls[i].Problem != nil:
		return python.Call{}, f.calls[i].Problem
	case slices.Contains(names[i+1:], name):
		return python.Call{}, msl.Errorf(f.calls[i].Pos, "two calls have the name %s; give each its own", name)
	}
	return f.calls[i], nil
}

// Kernel returns the kernel of a call, with the signature that MLX generates for a launch: for its template arguments,
// and for the dtypes and sizes of its inputs and outputs, by name. The empty name selects the only call. Launches of the
// kernel have no template arguments. Places in findings are places in the Python file.
func (f *PythonFile) Kernel(
	ctx context.Context, name string, template []TemplateArg, inputs map[string]Array, outputs map[string]Output,
) (*Kernel, error) {
	call, err := f.find(name)
	if err != nil {
		return nil, err
	}
	source := translate.MLXSource{
		InputNames: call.Inputs, OutputNames: call.Outputs, Body: call.Source.Value, Header: call.Header.Value,
		AtomicOutputs: call.AtomicOutputs,
	}
	var arguments []translate.MLXTemplateArgument
	for _, a := range template {
		argument, err := mlxTemplateArgument(a)
		if err != nil {
			return nil, err
		}
		arguments = append(arguments, argument)
		source.TemplateNames = append(source.TemplateNames, a.Name)
	}
	var declared []translate.MLXInput
	for _, name := range call.Inputs {
		a, ok := inputs[name]
		if !ok {
			return nil, fmt.Errorf("the input %s is missing: add %[1]s=DTYPE[SHAPE]", name)
		}
		declared = append(declared, translate.MLXInput{
			Type: dtypes[a.DType].metal, Scalar: len(a.Shape) == 0, Small: a.Size() < shader.InDevice,
		})
	}
	var types []string
	for _, name := range call.Outputs {
		o, ok := outputs[name]
		if !ok {
			return nil, fmt.Errorf("the output %s is missing: add %[1]s=out:DTYPE[SHAPE]", name)
		}
		types = append(types, dtypes[o.DType].metal)
	}
	text := source.Text(call.Name, arguments, declared, types)
	file, err := shader.LoadText(ctx, f.name, text, f.origins(call, text))
	if err != nil {
		return nil, err
	}
	k, err := file.Kernel("")
	if err != nil {
		return nil, err
	}
	k.Name = call.Name
	return New(k), nil
}

// mlxTemplateArgument returns a template argument as MLX writes it.
func mlxTemplateArgument(a TemplateArg) (translate.MLXTemplateArgument, error) {
	switch v := a.Value.(type) {
	case DType:
		return translate.MLXTemplateArgument{Kind: "typename", Value: dtypes[v].metal}, nil
	case int:
		return translate.MLXTemplateArgument{Kind: "int", Value: strconv.Itoa(v)}, nil
	case bool:
		return translate.MLXTemplateArgument{Kind: "bool", Value: strconv.Itoa(map[bool]int{true: 1}[v])}, nil
	}
	return translate.MLXTemplateArgument{}, fmt.Errorf("the template argument %s = %v is no dtype, integer or bool, which "+
		"are those of MLX", a.Name, a.Value)
}

// origins returns the places in the Python file of the lines of the text that MLX generates for a call. Lines that MLX
// adds have the place of the call.
func (f *PythonFile) origins(call python.Call, text string) []msl.Line {
	offsets := slices.Repeat([]int{call.Pos.Offset}, len(text)+1)
	copy(offsets, call.Header.Offsets)
	copy(offsets[strings.LastIndex(text, ") {\n"+call.Source.Value+"\n}\n")+len(") {\n"):], call.Source.Offsets)
	var lines []msl.Line
	for begin := 0; begin <= len(text); {
		end := begin + strings.IndexByte(text[begin:]+"\n", '\n')
		l := msl.Line{Position: f.position(offsets[begin])}
		for i := begin; i < end; i++ {
			at := f.position(offsets[i])
			l.Columns = append(l.Columns, msl.Column{At: i - begin + 1, From: at.Column})
		}
		l.Offset -= l.Column - 1 // of the line's first column
		lines = append(lines, l)
		begin = end + 1
	}
	return lines
}

// position returns the position of an offset in the file.
func (f *PythonFile) position(offset int) msl.Position {
	line, found := slices.BinarySearch(f.lines, offset)
	if !found {
		line--
	}
	return msl.Position{File: f.name, Offset: offset, Line: line + 1, Column: offset - f.lines[line] + 1}
}
