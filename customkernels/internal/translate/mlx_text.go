package translate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// MLXInput determines the declaration of an input. Type is MLX's name of the dtype.
type MLXInput struct {
	Type   string
	Scalar bool // an array of dimension 0, which is small too
	Small  bool // fewer than 8 elements, passed in constant memory
}

// MLXTemplateArgument is a template argument. Kind is typename, int or bool.
type MLXTemplateArgument struct{ Kind, Value string }

// Text returns the text that MLX 0.32.4 generates for a launch, byte for byte. name is the kernel's name without the
// prefix that MLX adds. outputs holds MLX's names of the outputs' dtypes.
func (s MLXSource) Text(name string, template []MLXTemplateArgument, inputs []MLXInput, outputs []string) string {
	var parameters, values []string
	for i, a := range template {
		parameters = append(parameters, a.Kind+" "+s.TemplateNames[i])
		values = append(values, a.Value)
	}
	full := "custom_kernel_" + name
	if len(template) > 0 {
		full += "__" + strings.Join(values, "_")
	}
	for _, in := range inputs {
		full += "_" + in.Type + suffix(in)
	}
	for _, dtype := range outputs {
		full += "_" + dtype
	}

	var b strings.Builder
	b.WriteString(s.Header)
	if len(template) > 0 {
		fmt.Fprintf(&b, "template <%s>\n", strings.Join(parameters, ", "))
	}
	fmt.Fprintf(&b, "[[kernel]] void %s(\n%s) {\n%s\n}\n", full, strings.Join(s.arguments(inputs, outputs), ",\n"),
		s.Body)
	if len(template) > 0 {
		instance := full + "<" + strings.Join(values, ", ") + ">"
		fmt.Fprintf(&b, "\ntemplate [[host_name(\"%s\")]] [[kernel]] decltype(%s) %s;\n", full, instance, instance)
	}
	return b.String()
}

// suffix returns the suffix of an input's type in the kernel's name.
func suffix(in MLXInput) string {
	switch {
	case in.Scalar:
		return "s"
	case in.Small:
		return "c"
	}
	return ""
}

// arguments returns the function's parameters. MLX adds a shape, strides, a number of dimensions or a thread position
// if its name occurs in the body.
func (s MLXSource) arguments(inputs []MLXInput, outputs []string) []string {
	var list []string
	buffer := func(format string, args ...any) {
		list = append(list, fmt.Sprintf("  "+format, args...)+fmt.Sprintf(" [[buffer(%d)]]", len(list)))
	}
	for i, in := range inputs {
		name, space, pointer := s.InputNames[i], "device", "*"
		if in.Small {
			space = "constant"
		}
		if in.Scalar {
			pointer = "&"
		}
		buffer("const %s %s%s %s", space, in.Type, pointer, name)
		if in.Scalar {
			continue
		}
		for _, implicit := range []struct{ suffix, declaration string }{
			{"_shape", "int*"}, {"_strides", "int64_t*"}, {"_ndim", "int&"},
		} {
			if strings.Contains(s.Body, name+implicit.suffix) {
				buffer("const constant %s %s%s", implicit.declaration, name, implicit.suffix)
			}
		}
	}
	for i, dtype := range outputs {
		if s.AtomicOutputs {
			dtype = "atomic<" + dtype + ">"
		}
		buffer("device %s* %s", dtype, s.OutputNames[i])
	}
	for _, attribute := range slices.Sorted(maps.Keys(msl.PositionTypes)) {
		if strings.Contains(s.Body, attribute) {
			list = append(list, fmt.Sprintf("  %s %s [[%[2]s]]", msl.PositionTypes[attribute], attribute))
		}
	}
	return list
}
