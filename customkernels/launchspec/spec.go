package launchspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

// A Spec is one launch of a kernel, as a launch description gives it.
type Spec struct {
	// Kernel is the name of the function. It is empty for the only function of a file.
	Kernel string
	// Line is the first line of the description, from 1.
	Line int
	// Launch is the launch, without InOut. Its outputs are in the order of the description, which may differ from the
	// kernel's: see Arguments.
	Launch sanitizer.Launch
	// OutputNames are the parameters of Launch.Outputs, in the same order.
	OutputNames []string
	// Inputs are the inputs in the order of the description.
	Inputs []Input
	// Fields are the fields of structures in buffers that the description gives by fields.
	Fields []FieldValue
	// InOut are the initial contents of outputs that the kernel also reads.
	InOut []Input
	// Expected are the expectations about outputs.
	Expected []Expectation
	// Seeds is the number of launches with different random inputs, of consecutive seeds. 0 means 1.
	Seeds int
	// ThreadgroupSizes are the numbers of elements of threadgroup arguments, by name.
	ThreadgroupSizes map[string]int
	// Samplers are the options of sampler arguments, such as filter::linear, by name.
	Samplers map[string][]string
}

// An Input describes the content of an input, or of an in-out buffer before the launch.
type Input struct {
	Name  string // of the kernel's parameter
	DType sanitizer.DType
	Shape []int // nil for an input without axes
	Fill  Fill
}

// A LineError is the error of a launch description.
type LineError struct {
	Line int // first line of the description, from 1
	Err  error
}

// Error returns the line and the error.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the error.
func (e *LineError) Unwrap() error { return e.Err }

// Parse returns the launch descriptions of a shader file in their order. It does not parse the shader. The error is a
// [*LineError] with a remedy.
func Parse(src []byte) ([]Spec, error) {
	var specs []Spec
	var words []string
	begin, open := 0, false // the first line of the current description, and whether there is one
	finish := func() error {
		if !open {
			return nil
		}
		open = false
		found, err := parseDescription(words)
		if err != nil {
			return &LineError{begin, fmt.Errorf("launch description: %w", err)}
		}
		for i := range found {
			found[i].Line = begin
		}
		specs = append(specs, found...)
		return nil
	}
	line := 0
	for text := range strings.Lines(string(src)) {
		line++
		comment, isComment := strings.CutPrefix(strings.TrimSpace(text), "//")
		comment = strings.TrimSpace(comment)
		if more, ok := strings.CutPrefix(comment, "with:"); ok && isComment && open {
			words = append(words, strings.Fields(more)...)
			continue
		}
		if err := finish(); err != nil {
			return nil, err
		}
		if rest, ok := strings.CutPrefix(comment, "launch:"); ok && isComment {
			begin, open, words = line, true, strings.Fields(rest)
		}
	}
	if err := finish(); err != nil {
		return nil, err
	}
	return specs, nil
}

// parseDescription reads the words of one description, and returns a Spec for each kernel that it names.
func parseDescription(words []string) ([]Spec, error) {
	names := len(words)
	if i := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "=") }); i >= 0 {
		names = i
	}
	for _, name := range words[:names] {
		if !kernelSyntax.MatchString(name) {
			return nil, fmt.Errorf("%q is neither the name of a kernel nor a setting: write NAME=VALUE without "+
				"spaces", name)
		}
	}
	var spec Spec
	seen := map[string]bool{}
	for _, w := range words[names:] {
		name, value, ok := strings.Cut(w, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not a setting: write NAME=VALUE without spaces, and put names of kernels "+
				"first", w)
		}
		field, isField := parseField(name, value)
		if !isName(name) && !isField {
			return nil, fmt.Errorf("%q is not the name of a parameter: write NAME=VALUE", name)
		}
		once := name
		if slices.Contains(settings, name) && isArgument(value) {
			once = "argument " + name
		}
		if seen[once] {
			return nil, fmt.Errorf("%s is given twice: keep one", name)
		}
		seen[once] = true
		if isField {
			spec.Fields = append(spec.Fields, field)
			continue
		}
		if err := spec.set(name, value); err != nil {
			return nil, fmt.Errorf("%s: %w", w, err)
		}
	}
	for _, name := range []string{"grid", "threadgroup"} {
		if !seen[name] {
			return nil, fmt.Errorf("%s is missing: add %s=THREADS", name, name)
		}
	}
	if names == 0 {
		return []Spec{spec}, nil
	}
	specs := make([]Spec, names)
	for i := range specs {
		specs[i] = spec
		specs[i].Kernel = words[i]
	}
	return specs, nil
}

// Options returns the options of the kernel for this launch: the sizes of threadgroup arguments and the values of
// function constants. Pass them to Library.Kernel of package sanitizer or customkernels.
func (s Spec) Options() []sanitizer.Option {
	options := s.structureOptions()
	for name, elements := range s.ThreadgroupSizes {
		options = append(options, shader.ThreadgroupSize(name, elements))
	}
	for name, words := range s.Samplers {
		options = append(options, shader.Sampler(name, words))
	}
	for _, in := range s.Inputs {
		options = append(options, shader.GivenBuffer(in.Name))
	}
	for _, a := range s.Launch.Template {
		options = append(options, func(k *msl.Kernel) (translate.Option, error) {
			if !slices.ContainsFunc(k.Constants, func(c msl.FunctionConstant) bool { return c.Name == a.Name }) {
				return nil, nil // a template argument
			}
			switch v := a.Value.(type) {
			case bool:
				return shader.FunctionConstant(a.Name, v)(k)
			case int:
				return shader.FunctionConstant(a.Name, v)(k)
			case float32:
				return shader.FunctionConstant(a.Name, v)(k)
			}
			if e, ok := a.Value.(sanitizer.Expression); ok {
				return translate.ConstantValue(a.Name, string(e)), nil
			}
			return nil, fmt.Errorf("the function constant %s cannot be %v: write true, false or a number",
				a.Name, a.Value)
		})
	}
	return options
}

// Arguments returns the arguments of [sanitizer.Kernel.Sanitize] for a kernel with the options of [Spec.Options]: the
// launch and its inputs, with outputs and inputs in the kernel's order. Random elements depend on the seed and the name
// of the input alone, so they are the same on every machine. The error names a missing or unknown parameter, or one
// that the description gives as an input and the kernel writes, or the reverse.
func (s Spec) Arguments(k *sanitizer.Kernel, seed uint64) (sanitizer.Launch, []sanitizer.Array, error) {
	fail := func(format string, args ...any) (sanitizer.Launch, []sanitizer.Array, error) {
		return sanitizer.Launch{}, nil,
			&LineError{s.Line, fmt.Errorf("launch description of %s: %w", k.Name(), fmt.Errorf(format, args...))}
	}
	for _, in := range slices.Concat(s.Inputs, s.InOut) {
		if in.Fill.Kind == FillFile && in.Fill.data == nil {
			return fail("the elements of %s are in a file: call Spec.ReadFiles first", in.Name)
		}
	}
	for _, in := range s.Inputs {
		if slices.Contains(k.Outputs(), in.Name) {
			return fail("the kernel writes %s: write %s=out:DTYPE[SHAPE], or inout: if it also reads it",
				in.Name, in.Name)
		}
		if !slices.Contains(k.Inputs(), in.Name) {
			return fail("the kernel has no input %s: its inputs are %v", in.Name, k.Inputs())
		}
	}
	for _, a := range s.Launch.Template {
		if e, ok := a.Value.(sanitizer.Expression); ok && (slices.Contains(k.Inputs(), a.Name) || slices.Contains(k.Outputs(), a.Name)) {
			return fail("%s=%s: %q is not a dtype: write one of %v", a.Name, e, string(e), sanitizer.DTypes())
		}
	}
	for _, out := range s.OutputNames {
		if slices.Contains(k.Inputs(), out) {
			return fail("the kernel only reads %s: write %s=DTYPE[SHAPE]", out, out)
		}
		if !slices.Contains(k.Outputs(), out) {
			return fail("the kernel has no output %s: its outputs are %v", out, k.Outputs())
		}
	}
	l := s.Launch
	l.Outputs = nil
	l.Template = slices.DeleteFunc(slices.Clone(l.Template), func(a sanitizer.TemplateArg) bool {
		return slices.Contains(k.FunctionConstants(), a.Name)
	})
	buffers := map[string]operand{}
	var inputs []sanitizer.Array
	for _, name := range k.Inputs() {
		i := slices.IndexFunc(s.Inputs, func(in Input) bool { return in.Name == name })
		if s.byFields(name) {
			a, err := s.structure(k, name, seed, buffers)
			if err != nil {
				return fail("%w", err)
			}
			if i >= 0 {
				return fail("%s is given as an array and by fields: keep one", name)
			}
			inputs = append(inputs, a)
			continue
		}
		if i < 0 {
			return fail("the input %s is missing: add %s=DTYPE[SHAPE]", name, name)
		}
		inputs = append(inputs, s.Inputs[i].Array(seed))
	}
	for _, name := range k.Outputs() {
		i := slices.Index(s.OutputNames, name)
		if s.byFields(name) {
			a, err := s.structure(k, name, seed, buffers)
			if err != nil {
				return fail("%w", err)
			}
			if i >= 0 {
				return fail("%s is given as an output and by fields: keep one", name)
			}
			if l.InOut == nil {
				l.InOut = map[string]sanitizer.Array{}
			}
			l.InOut[name] = a
			l.Outputs = append(l.Outputs, sanitizer.Output{Shape: a.Shape, DType: a.DType})
			continue
		}
		if i < 0 {
			return fail("the output %s is missing: add %s=out:DTYPE[SHAPE]", name, name)
		}
		l.Outputs = append(l.Outputs, s.Launch.Outputs[i])
	}
	for _, in := range s.InOut {
		if l.InOut == nil {
			l.InOut = map[string]sanitizer.Array{}
		}
		l.InOut[in.Name] = in.Array(seed)
	}
	if len(s.Expected) == 0 {
		return l, inputs, nil
	}
	for i, name := range k.Inputs() {
		buffers[name] = operandOf(inputs[i])
	}
	for name, a := range l.InOut {
		buffers[name] = operandOf(a)
	}
	l.Expected = map[string]sanitizer.Expected{}
	for _, e := range s.Expected {
		output := l.Outputs[slices.Index(k.Outputs(), e.Output)]
		values, err := e.of(sanitizer.Array{Shape: output.Shape}.Size(), buffers)
		if err != nil {
			return fail("%w", err)
		}
		l.Expected[e.Output] = values
	}
	return l, inputs, nil
}
