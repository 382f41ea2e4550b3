package launchspec

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

// maxElements bounds the arrays of a description, which may come from an untrusted file.
const maxElements = 1 << 28

// maxSeeds bounds the launches of a description.
const maxSeeds = 1000

var nameSyntax = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// kernelSyntax matches the name of a kernel, which [[host_name("…")]] may choose freely.
var kernelSyntax = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_:<>,-]*$`)

func isName(s string) bool { return nameSyntax.MatchString(s) }

// settings are the names of settings that are no arguments of the kernel.
var settings = []string{"grid", "threadgroup", "seeds", "init"}

// isArgument reports whether a value is that of an argument of the kernel. So an argument may be called grid.
func isArgument(value string) bool { return strings.ContainsAny(value, "[:") }

// set applies the setting name=value.
func (s *Spec) set(name, value string) (err error) {
	if isArgument(value) {
		return s.argument(name, value)
	}
	switch name {
	case "grid":
		s.Launch.Grid, err = parseAxes(value)
		return err
	case "threadgroup":
		s.Launch.Threadgroup, err = parseAxes(value)
		return err
	case "seeds":
		s.Seeds, err = strconv.Atoi(value)
		if err != nil || s.Seeds < 1 || s.Seeds > maxSeeds {
			return fmt.Errorf("%q is not a number of seeds: write an integer from 1 to %d", value, maxSeeds)
		}
		return nil
	case "init":
		v, err := strconv.ParseFloat(value, 32)
		if err != nil {
			return errors.New("write init=NUMBER")
		}
		init := float32(v)
		s.Launch.InitValue = &init
		return nil
	}
	return s.argument(name, value)
}

// argument applies the setting name=value of an argument of the kernel, a template argument or a function constant.
func (s *Spec) argument(name, value string) (err error) {
	kind, array, ok := strings.Cut(value, ":")
	if kind == "sampler" {
		return s.sampler(name, array)
	}
	if !ok {
		kind = ""
	}
	switch kind {
	case "threadgroup":
		elements, err := strconv.Atoi(array)
		if err != nil || elements < 1 {
			return fmt.Errorf("%q is not a number of elements: write NAME=threadgroup:ELEMENTS", array)
		}
		if s.ThreadgroupSizes == nil {
			s.ThreadgroupSizes = map[string]int{}
		}
		s.ThreadgroupSizes[name] = elements
		return nil
	case "inout":
		array, err := s.expect(name, array)
		if err != nil {
			return err
		}
		in, err := parseInput(name, array)
		s.InOut = append(s.InOut, in)
		s.addOutput(in)
		return err
	case "out", "undefined":
		array, err := s.expect(name, array)
		if err != nil {
			return err
		}
		out, fill, err := parseArray(array)
		if err == nil && fill != "" {
			err = errors.New("an output has no values: write NAME=out:DTYPE[SHAPE], init=NUMBER for the initial value of " +
				"all outputs, and :expect=VALUES for the values after the launch")
		}
		if kind == "undefined" {
			s.Launch.Undefined = append(s.Launch.Undefined, name)
		}
		out.Name = name
		s.addOutput(out)
		return err
	}
	if arg, ok := parseTemplateArg(value); ok {
		s.Launch.Template = append(s.Launch.Template, sanitizer.TemplateArg{Name: name, Value: arg})
		return nil
	}
	in, err := parseInput(name, value)
	if word, _, _ := strings.Cut(value, ":"); err != nil && expressionSyntax.MatchString(value) && !isDType(word) {
		s.Launch.Template = append(s.Launch.Template, sanitizer.TemplateArg{Name: name, Value: sanitizer.Expression(value)})
		return nil
	}
	s.Inputs = append(s.Inputs, in)
	return err
}

// sampler reads the options of a sampler argument, separated by commas.
func (s *Spec) sampler(name, options string) error {
	words, err := samplerWords(options)
	if err != nil {
		return err
	}
	if s.Samplers == nil {
		s.Samplers = map[string][]string{}
	}
	s.Samplers[name] = words
	return nil
}

func samplerWords(options string) ([]string, error) {
	if options == "" {
		return nil, nil
	}
	words := strings.Split(options, ",")
	return words, shader.CheckSampler(words)
}

// expect adds the expectation about an output, and returns the rest of its setting.
func (s *Spec) expect(output, setting string) (rest string, err error) {
	rest, text, ok := strings.Cut(setting, ":expect=")
	if !ok {
		return setting, nil
	}
	e, err := parseExpectation(output, text)
	s.Expected = append(s.Expected, e)
	return rest, err
}

// expressionSyntax matches a template argument in Metal's words: a type, function or enumerator.
var expressionSyntax = regexp.MustCompile(`^[A-Za-z_(&]([A-Za-z0-9_<>,*&+/()!-]|::)*$`)

func isDType(name string) bool {
	_, ok := parseDType(name)
	_, _, format := parseFormat(name)
	return ok || format
}

func (s *Spec) addOutput(a Input) {
	s.OutputNames = append(s.OutputNames, a.Name)
	s.Launch.Outputs = append(s.Launch.Outputs, sanitizer.Output{Shape: a.Shape, DType: a.DType})
}

var fractionSyntax = regexp.MustCompile(`^[-+]?[0-9]*\.[0-9]+$`)

// parseTemplateArg reads a DType, an int, a bool or a float32.
func parseTemplateArg(value string) (any, bool) {
	if d, ok := parseDType(value); ok {
		return d, true
	}
	if n, err := strconv.Atoi(value); err == nil {
		return n, true
	}
	if value == "true" || value == "false" {
		return value == "true", true
	}
	if fractionSyntax.MatchString(value) {
		f, err := strconv.ParseFloat(value, 32)
		return float32(f), err == nil
	}
	return nil, false
}

func parseDType(name string) (sanitizer.DType, bool) {
	all := sanitizer.DTypes()
	i := slices.IndexFunc(all, func(d sanitizer.DType) bool { return d.String() == name })
	if i < 0 {
		return sanitizer.Invalid, false
	}
	return all[i], true
}

// parseAxes reads X[,Y[,Z]].
func parseAxes(value string) (axes [3]int, err error) {
	parts := strings.Split(value, ",")
	if len(parts) > 3 {
		return axes, errors.New("write at most three numbers")
	}
	for i, p := range parts {
		if axes[i], err = strconv.Atoi(p); err != nil || axes[i] < 1 || axes[i] > math.MaxInt32 {
			return axes, fmt.Errorf("%q is not a number of threads: write one to three positive integers, such as 64 "+
				"or 32,8", p)
		}
	}
	return axes, nil
}

// parseInput reads DTYPE[SHAPE]:FILL.
func parseInput(name, value string) (Input, error) {
	in, fill, err := parseArray(value)
	in.Name = name
	if err == nil {
		in.Fill, err = parseFill(fill, in)
	}
	return in, err
}

var arraySyntax = regexp.MustCompile(`^([a-z0-9]+)(\[([^\]]*)\])?(:(.*))?$`)

// parseArray reads DTYPE[SHAPE]:FILL and returns the text of the fill.
func parseArray(value string) (a Input, fill string, err error) {
	m := arraySyntax.FindStringSubmatch(value)
	if m == nil {
		return a, "", errors.New("write DTYPE[SHAPE], such as float32[4,16]")
	}
	var ok bool
	channels := 0 // of a pixel
	if a.DType, ok = parseDType(m[1]); !ok {
		a.DType, channels, ok = parseFormat(m[1])
	}
	if !ok {
		return a, "", fmt.Errorf("%q is not a dtype: write one of %v, true, false or an integer, or for a texture a pixel "+
			"format such as rgba8unorm, r32float or rg16uint", m[1], sanitizer.DTypes())
	}
	if m[4] != "" && m[5] == "" {
		return a, "", errors.New("the fill after the colon is empty: write one, such as zeros, or remove the colon")
	}
	if m[2] == "" {
		if channels > 0 {
			return a, "", fmt.Errorf("a texture needs a size: write %s[HEIGHT,WIDTH]", m[1])
		}
		return a, m[5], nil
	}
	size := 1
	for p := range strings.SplitSeq(m[3], ",") {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return a, "", fmt.Errorf("%q is not the length of an axis: write DTYPE[SHAPE], such as float32[4,16]", p)
		}
		if n > 0 && size > maxElements/n {
			return a, "", fmt.Errorf("the array has more than %d elements: make it smaller", maxElements)
		}
		size *= n
		a.Shape = append(a.Shape, n)
	}
	if channels > 0 {
		a.Shape = append(a.Shape, channels)
	}
	return a, m[5], nil
}
