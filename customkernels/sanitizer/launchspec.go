package sanitizer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// A LaunchSpec is one launch of a kernel as a comment in its shader file describes
// it, so that a tool or a test can run a kernel that it knows nothing of.
//
// A description begins with "// launch:" at the start of a line and goes on, where
// it is long, over the comment lines right below it that begin with "with:":
//
//	// launch: scale grid=1000 threadgroup=256 T=float16
//	//   with: x=float16[10,100] factor=float32:2.5 y=out:float16[10,100]
//
// It is a list of words with spaces between them. The words in front name the
// kernels, which the same launch suits; with no name it is for the only kernel
// of the file. A kernel may have several descriptions. The other words are settings,
// in any order, and no word contains a space:
//
//	grid=X[,Y[,Z]]         threads in each axis, needed
//	threadgroup=X[,Y[,Z]]  threads of a group in each axis, needed
//	init=NUMBER            what the outputs hold before the launch; else nothing defined
//	NAME=DTYPE             the template argument of a type
//	NAME=INTEGER           that of a number, or a function constant
//	NAME=true|false        that of a truth value, or a function constant
//	NAME=FRACTION          a function constant
//	NAME=threadgroup:N     elements of a [[threadgroup(n)]] argument
//	NAME=out:DTYPE[SHAPE]  an output
//	NAME=undefined:DTYPE[SHAPE]
//	                       an output of which the kernel may leave elements undefined
//	NAME=inout:DTYPE[SHAPE]:FILL
//	                       an output that the kernel also reads, and what it holds before
//	NAME=DTYPE[SHAPE]      an input, filled as suits its dtype
//	NAME=DTYPE[SHAPE]:FILL an input
//	NAME=DTYPE:NUMBER      an input without axes, for a "constant T&"
//
// NAME is the kernel's parameter, DTYPE the name of one of MLX's dtypes, and SHAPE
// lengths with commas between them. FILL is one of
//
//	normal     random numbers of the standard normal distribution (default of floats)
//	uniform    random numbers from [0, 1)
//	LOW..HIGH  random integers, both ends included (default of integers: 0..9, of bool: 0..1)
//	iota       0, 1, 2, …
//	zeros      0 everywhere
//	ones       1 everywhere
//	V          the number V everywhere
//	V,V,…      these numbers, one for each element
type LaunchSpec struct {
	// Kernel is the function's name; empty stands for the only one of the file.
	Kernel string
	// Line is where the description begins.
	Line int
	// Launch is the launch. Its outputs are in the order of the description, which
	// need not be that of the kernel: see Arguments.
	Launch Launch
	// OutputNames are the parameters that Launch.Outputs belong to.
	OutputNames []string
	// Inputs are the inputs in the order of the description, and InOut what those
	// outputs hold before the launch that the kernel also reads.
	Inputs, InOut []InputSpec
	// ThreadgroupSizes are the elements of threadgroup arguments, by name.
	ThreadgroupSizes map[string]int
}

// InputSpec describes an input, or an in-out buffer before the launch.
type InputSpec struct {
	Name  string // of the kernel's parameter
	DType DType
	Shape []int // nil for an input without axes
	Fill  Fill
}

// ParseLaunches finds the launch descriptions of a shader file, in its order. It does
// not parse the shader, and returns none if there are none. The error names the
// line and says what to do.
func ParseLaunches(src []byte) ([]LaunchSpec, error) {
	var specs []LaunchSpec
	var words []string
	begin, open := 0, false // of the description that words belong to
	finish := func() error {
		if !open {
			return nil
		}
		open = false
		found, err := parseLaunch(words)
		if err != nil {
			return fmt.Errorf("line %d: launch description: %w", begin, err)
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

// parseLaunch reads the words of one description.
func parseLaunch(words []string) ([]LaunchSpec, error) {
	names := len(words)
	if i := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "=") }); i >= 0 {
		names = i
	}
	for _, name := range words[:names] {
		if !isName(name) {
			return nil, fmt.Errorf("%q is no kernel's name and no setting: write NAME=VALUE, with no space in it", name)
		}
	}
	var spec LaunchSpec
	seen := map[string]bool{}
	for _, w := range words[names:] {
		name, value, ok := strings.Cut(w, "=")
		if !ok {
			return nil, fmt.Errorf("%q stands among the settings: write NAME=VALUE, with no space in it, and kernel names first", w)
		}
		if !isName(name) {
			return nil, fmt.Errorf("%q is no name of a parameter: write NAME=VALUE", name)
		}
		if seen[name] {
			return nil, fmt.Errorf("%s is given twice: keep one", name)
		}
		seen[name] = true
		if err := spec.set(name, value); err != nil {
			return nil, fmt.Errorf("%s: %w", w, err)
		}
	}
	for _, name := range []string{"grid", "threadgroup"} {
		if !seen[name] {
			return nil, fmt.Errorf("%s is missing: add %s=THREADS", name, name)
		}
	}
	if len(spec.OutputNames) == 0 {
		return nil, fmt.Errorf("there is no output: add NAME=out:DTYPE[SHAPE], such as y=out:float32[64]")
	}
	if names == 0 {
		return []LaunchSpec{spec}, nil
	}
	specs := make([]LaunchSpec, names)
	for i := range specs {
		specs[i] = spec
		specs[i].Kernel = words[i]
	}
	return specs, nil
}

// Options makes what Library.Kernel takes for this launch: sizes of threadgroup arguments and
// values of function constants.
func (s LaunchSpec) Options() []Option {
	var options []Option
	for name, elements := range s.ThreadgroupSizes {
		options = append(options, shader.ThreadgroupSize(name, elements))
	}
	for _, a := range s.Launch.Template {
		options = append(options, func(k *msl.Kernel) (translate.MLXOption, error) {
			if !isConstant(k, a.Name) {
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
			return nil, fmt.Errorf("the function constant %s cannot be %v: write true, false or a number", a.Name, a.Value)
		})
	}
	return options
}

func isConstant(k *msl.Kernel, name string) bool {
	return slices.ContainsFunc(k.Constants, func(c msl.FunctionConstant) bool { return c.Name == name })
}

// Arguments makes what k.Launch takes, for a kernel that was given Options: the launch with its
// outputs, and the input arrays, both in the order of the kernel's buffers. Random values come from the
// seed and the input's name, so they are the same on every machine, and another
// input does not change them. The error says which parameter is missing, unknown or of
// another direction.
func (s LaunchSpec) Arguments(k *Kernel, seed uint64) (Launch, []Array, error) {
	fail := func(format string, args ...any) (Launch, []Array, error) {
		return Launch{}, nil, fmt.Errorf("line %d: launch description of %s: %w", s.Line, k.loaded.Name, fmt.Errorf(format, args...))
	}
	named := func(name string) func(*msl.Buffer) bool {
		return func(b *msl.Buffer) bool { return b.Name == name }
	}
	for _, in := range s.Inputs {
		if slices.ContainsFunc(k.loaded.Source.Outputs, named(in.Name)) {
			return fail("the kernel writes %s: write %s=out:DTYPE[SHAPE], or inout: if it also reads it", in.Name, in.Name)
		}
		if !slices.ContainsFunc(k.loaded.Source.Inputs, named(in.Name)) {
			return fail("the kernel has no input %s: its inputs are %v", in.Name, bufferNames(k.loaded.Source.Inputs))
		}
	}
	for _, out := range s.OutputNames {
		if slices.ContainsFunc(k.loaded.Source.Inputs, named(out)) {
			return fail("the kernel only reads %s: write %s=DTYPE[SHAPE]", out, out)
		}
		if !slices.ContainsFunc(k.loaded.Source.Outputs, named(out)) {
			return fail("the kernel has no output %s: its outputs are %v", out, bufferNames(k.loaded.Source.Outputs))
		}
	}
	l := s.Launch
	l.Outputs = nil
	l.Template = slices.DeleteFunc(slices.Clone(l.Template), func(a TemplateArg) bool { return isConstant(k.loaded.Parsed, a.Name) })
	var inputs []Array
	for _, b := range k.loaded.Source.Inputs {
		i := slices.IndexFunc(s.Inputs, func(in InputSpec) bool { return in.Name == b.Name })
		if i < 0 {
			return fail("the input %s is missing: add %s=DTYPE[SHAPE]", b.Name, b.Name)
		}
		inputs = append(inputs, s.Inputs[i].Array(seed))
	}
	for _, b := range k.loaded.Source.Outputs {
		i := slices.Index(s.OutputNames, b.Name)
		if i < 0 {
			return fail("the output %s is missing: add %s=out:DTYPE[SHAPE]", b.Name, b.Name)
		}
		l.Outputs = append(l.Outputs, s.Launch.Outputs[i])
	}
	for _, in := range s.InOut {
		if l.InOut == nil {
			l.InOut = map[string]Array{}
		}
		l.InOut[in.Name] = in.Array(seed)
	}
	return l, inputs, nil
}

func bufferNames(buffers []*msl.Buffer) []string {
	names := make([]string, len(buffers))
	for i, b := range buffers {
		names[i] = b.Name
	}
	return names
}
