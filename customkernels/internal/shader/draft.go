package shader

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// draft returns a launch description of a kernel of a native file: one thread, zeros, and buffers that are large enough
// for most kernels. It shows that the kernel loads, compiles and runs. Real sizes must replace its sizes. A template has
// the arguments of its first explicit instantiation.
func (f *File) draft(k *msl.Kernel) string {
	name, arguments := k.HostName, []string(nil)
	for _, in := range f.parsed.Instances {
		if in.Kernel == k {
			arguments = in.Arguments
			if in.Name != "" {
				name = in.Name
			}
			break
		}
	}
	words := []string{name, "grid=1", "threadgroup=1"}
	types := map[string]string{}
	for i, p := range k.Template {
		value := draftArgument(p)
		if i < len(arguments) {
			value = arguments[i]
		}
		types[p.Name] = value
		if name == k.HostName && p.Name != "" && (i < len(arguments) || p.Default == "") {
			words = append(words, p.Name+"="+strings.ReplaceAll(value, " ", ""))
		}
	}
	for _, c := range k.Constants {
		if _, taken := types[c.Name]; taken || k.HasArgument(c.Name) {
			continue
		}
		words = append(words, c.Name+"="+draftConstant(c.Type))
	}
	for _, s := range k.Samplers {
		words = append(words, s.Name+"=sampler")
	}
	for _, b := range k.Buffers {
		if fields := draftFields(k, b, types); fields != nil {
			words = append(words, fields...)
		} else {
			words = append(words, b.Name+"="+draftBuffer(b, types))
		}
	}
	for _, a := range k.Threadgroup {
		if !a.Reference {
			words = append(words, a.Name+"=threadgroup:1024")
		}
	}
	return "// launch: " + strings.Join(words, " ")
}

// Drafts returns a draft for each kernel function that can run.
func (f *File) Drafts() []string {
	var drafts []string
	for _, k := range f.parsed.Kernels {
		if k.Problem == nil {
			drafts = append(drafts, f.draft(k))
		}
	}
	return drafts
}

func draftArgument(p msl.TemplateParameter) string {
	switch p.Kind {
	case msl.TypeParameter:
		return "float"
	case msl.BoolParameter:
		return "true"
	}
	return "4"
}

func draftConstant(kind string) string {
	switch kind {
	case "bool":
		return "true"
	case "float", "half":
		return "1.0"
	}
	return "4"
}

// draftBuffer returns an array for a buffer.
func draftBuffer(b *msl.Buffer, types map[string]string) string {
	element := b.Element
	if t, ok := types[element]; ok {
		element = t
	}
	if b.Texture != "" {
		return draftTexture(b, element)
	}
	dtype, plain := draftDType(element)
	switch {
	case b.Space == msl.Constant && b.Reference && plain:
		return dtype + ":1"
	case !b.Writable():
		return dtype + "[4096]:zeros"
	}
	return fmt.Sprintf("inout:%s[4096]:zeros", dtype)
}

// draftFields returns the fields of an argument buffer, and the buffers and textures to which they refer. It returns nil
// for another buffer.
func draftFields(k *msl.Kernel, b *msl.Buffer, types map[string]string) []string {
	layout, err := layoutOf(k, b)
	if err != nil || !slices.ContainsFunc(layout.Fields, func(f msl.Field) bool { return f.Element == "" }) {
		return nil
	}
	var fields, targets []string
	for _, f := range layout.Fields {
		value := "0"
		switch {
		case f.Sampler():
			value = "sampler"
		case f.Pointer():
			value = b.Name + "_" + strings.Trim(notWord.ReplaceAllString(f.Name, "_"), "_")
			targets = append(targets, value+"="+draftBuffer(f.Buffer, types))
		}
		fields = append(fields, b.Name+"."+f.Name+"="+value)
	}
	return append(fields, targets...)
}

var notWord = regexp.MustCompile(`\W+`)

// draftTexture returns a texture for an element type: 64 pixels along each axis, and the widest format that fits.
func draftTexture(b *msl.Buffer, element string) string {
	formats := map[string]string{
		"half": "rgba16float", "int": "rgba32sint", "short": "rgba16sint", "uint": "rgba32uint", "ushort": "rgba16uint",
	}
	axes := strings.TrimSuffix(strings.Repeat("64,", len(b.Texture.Axes())), ",")
	text := cmp.Or(formats[strings.TrimPrefix(element, "metal::")], "rgba32float") + "[" + axes + "]:zeros"
	if b.Writable() {
		return "inout:" + text
	}
	return text
}

// draftDType returns the dtype of a buffer's elements: of one lane of a vector, and uint32 for a structure. plain is
// set for a scalar.
func draftDType(element string) (dtype string, plain bool) {
	element = strings.TrimPrefix(element, "metal::")
	for _, atomic := range []string{"atomic<", "atomic_", "_atomic<"} {
		if rest, ok := strings.CutPrefix(element, atomic); ok {
			element = strings.TrimSuffix(rest, ">")
		}
	}
	if name := dtypeNames[msl.DType(element)]; name != "" {
		return name, true
	}
	for _, vector := range []string{"packed_vec<", "vec<"} {
		if rest, ok := strings.CutPrefix(element, vector); ok {
			element, _, _ = strings.Cut(rest, ",")
		}
	}
	element = strings.TrimPrefix(element, "packed_")
	if i := slices.IndexFunc([]byte(element), msl.IsDigit); i > 0 {
		element = element[:i]
	}
	if name := dtypeNames[msl.DType(element)]; name != "" {
		return name, false
	}
	return "uint32", false
}

var dtypeNames = map[string]string{
	"bool": "bool", "bfloat16_t": "bfloat16", "float16_t": "float16", "float": "float32", "complex64_t": "complex64",
	"int8_t": "int8", "int16_t": "int16", "int32_t": "int32", "int64_t": "int64",
	"uint8_t": "uint8", "uint16_t": "uint16", "uint32_t": "uint32", "uint64_t": "uint64",
}
