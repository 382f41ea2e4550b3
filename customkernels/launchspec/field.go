package launchspec

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

// A FieldValue gives one field of a structure in a buffer.
type FieldValue struct {
	Buffer, Field string // for params.size.width: params and size.width
	// Text is a fill, sampler[:OPTION,…], or for a pointer or texture the name of a buffer or texture of the description.
	Text string
}

var fieldSyntax = regexp.MustCompile(`^([A-Za-z_]\w*)\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d+\])*)$`)

// parseField reads BUFFER.FIELD=TEXT. ok is false for the name of another setting.
func parseField(name, text string) (f FieldValue, ok bool) {
	m := fieldSyntax.FindStringSubmatch(name)
	if m == nil {
		return f, false
	}
	return FieldValue{m[1], m[2], text}, true
}

// fillWords are the names that are fills and values. No field refers to a buffer with such a name.
var fillWords = []string{"normal", "uniform", "iota", "zeros", "ones", "true", "false", "nan", "inf"}

// structureOptions returns an option for each buffer that the description gives by fields.
func (s Spec) structureOptions() []sanitizer.Option {
	var order []string
	references := map[string]map[string]string{}
	for _, f := range s.Fields {
		if references[f.Buffer] == nil {
			references[f.Buffer] = map[string]string{}
			order = append(order, f.Buffer)
		}
		if isName(f.Text) && f.Text != "sampler" && !slices.Contains(fillWords, f.Text) {
			references[f.Buffer][f.Field] = f.Text
		}
	}
	var options []sanitizer.Option
	for _, name := range order {
		options = append(options, shader.Structure(name, references[name]))
	}
	return options
}

// byFields reports whether the description gives a buffer by its fields.
func (s Spec) byFields(buffer string) bool {
	return slices.ContainsFunc(s.Fields, func(f FieldValue) bool { return f.Buffer == buffer })
}

// structure returns the content of a buffer that the description gives by fields. It adds the numbers of each field to
// operands, under its name.
func (s Spec) structure(k *sanitizer.Kernel, buffer string, seed uint64, operands map[string]operand) (sanitizer.Array, error) {
	fields, size, err := k.Fields(buffer)
	if err != nil {
		return sanitizer.Array{}, err
	}
	data := make([]byte, size)
	given := map[string]FieldValue{}
	for _, v := range s.Fields {
		if v.Buffer == buffer {
			given[v.Field] = v
		}
	}
	var missing []string
	for _, f := range fields {
		v, ok := given[f.Name]
		delete(given, f.Name)
		if !ok {
			missing = append(missing, fmt.Sprintf("%s.%s (%s)", buffer, f.Name, f.Type))
			continue
		}
		if err := v.put(data, f, seed, operands); err != nil {
			return sanitizer.Array{}, fmt.Errorf("the field %s.%s is a %s: %w", buffer, f.Name, f.Type, err)
		}
	}
	if len(given) > 0 {
		return sanitizer.Array{}, unknownField(buffer, slices.Min(slices.Collect(maps.Keys(given))), fields)
	}
	if len(missing) > 0 {
		verb := "are"
		if len(missing) == 1 {
			verb = "is"
		}
		return sanitizer.Array{}, fmt.Errorf("give each field of %s: %s %s missing", buffer, strings.Join(missing, ", "), verb)
	}
	if size%4 == 0 {
		return sanitizer.Array{DType: sanitizer.Uint32, Shape: []int{size / 4}, Data: data}, nil
	}
	return sanitizer.Array{DType: sanitizer.Uint8, Shape: []int{size}, Data: data}, nil
}

func unknownField(buffer, name string, fields []sanitizer.Field) error {
	var names []string
	for _, f := range fields {
		names = append(names, fmt.Sprintf("%s (%s)", f.Name, f.Type))
	}
	return fmt.Errorf("%s has no field %s: its fields are %s", buffer, name, strings.Join(names, ", "))
}

// put stores the value of a field.
func (v FieldValue) put(data []byte, f sanitizer.Field, seed uint64, operands map[string]operand) error {
	options, isSampler := strings.CutPrefix(v.Text, "sampler")
	switch {
	case f.Pointer && !isName(v.Text):
		return fmt.Errorf("%q is no name: write the name of a buffer or texture of the description", v.Text)
	case f.Pointer:
		return nil // the checker stores the address
	case f.DType == sanitizer.Invalid && !isSampler:
		return fmt.Errorf("%q is no state of a sampler: write sampler or sampler:filter::linear", v.Text)
	case f.DType == sanitizer.Invalid:
		words, err := samplerWords(strings.TrimPrefix(options, ":"))
		if err == nil {
			copy(data[f.Offsets[0]:], shader.SamplerState(words))
		}
		return err
	}
	text := v.Text
	if f.DType == sanitizer.Bool {
		text = strings.NewReplacer("true", "1", "false", "0").Replace(text)
	}
	in := Input{Name: v.Buffer + "." + v.Field, DType: f.DType, Shape: []int{len(f.Offsets)}}
	var err error
	if text == "" {
		return fmt.Errorf("its value is empty: write a number, or one for each of its %d", len(f.Offsets))
	}
	if in.Fill, err = parseFill(text, in); err != nil {
		return err
	}
	if in.Fill.Kind == FillFile {
		return fmt.Errorf("%q is a file, and a field takes numbers", text)
	}
	array := in.Array(seed)
	for i, at := range f.Offsets {
		copy(data[at:], array.Data[i*f.DType.Size():(i+1)*f.DType.Size()])
	}
	operands[in.Name] = operandOf(array)
	return nil
}
