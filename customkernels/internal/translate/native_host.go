package translate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// HostNative rewrites the text of [Native] into C++ for the checker, as [Host] does for MLX's text. values
// holds the numbers of elements of the threadgroup arguments and the states of the samplers.
func HostNative(text string, values Values, c Conversions) (*HostSource, error) {
	h, err := rewriteFor(text, rewriter{unrollPragma: Unroll, zeroMemory: true})
	if err != nil {
		return nil, err
	}
	h.convert(c)
	h.aggregates()
	kernel, arguments, err := h.NativeKernel(h.items)
	if err != nil {
		return nil, err
	}
	renumber(kernel)
	out := &HostSource{KernelName: kernel.Name}
	if out.Buffers, err = hostBuffers(kernel); err != nil {
		return nil, err
	}
	out.Buffers = append(out.Buffers, values.Indirect...)
	ending, scope, _ := h.wrap()
	header := metalstd.NativeHeader
	switch {
	case h.UsesTextures():
		header = metalstd.TextureHeader
	case h.usesMLXPrelude():
		header = metalstd.HostHeader
	}
	rewritten := h.edits.Apply()
	var b strings.Builder
	b.WriteString("#include \"" + header + "\"\n")
	b.WriteString(strings.TrimRight(rewritten, "\n") + "\n")
	for _, n := range kernel.Namespaces {
		b.WriteString("namespace " + n + " { ")
	}
	b.WriteString("static void mlxg_call(void* const* buffers, const mlxg::thread_position& p) {\n  " +
		"(void)buffers; (void)p;\n")
	b.WriteString(layoutChecks(values.Layouts))
	b.WriteString("  " + kernelCall(kernel, arguments, nativeArguments(kernel, values, h.variables), "") + ";\n}\n")
	b.WriteString(strings.Repeat("}", len(kernel.Namespaces)) + ending)
	path := strings.Join(append(named([]string{scope}), append(named(kernel.Namespaces), "mlxg_call")...), "::")
	b.WriteString("namespace {\nvoid mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {\n  " +
		path + "(buffers, p);\n}\n}\n")
	fmt.Fprintf(&b, "extern \"C\" const mlxg::entry mlxgrad_entry = {%q, %d, mlxg_invoke};\n", kernel.Name,
		len(out.Buffers))
	out.Source = b.String()
	for _, a := range kernel.Threadgroup {
		out.ThreadgroupArguments = append(out.ThreadgroupArguments, a.Name)
	}
	out.Variables = h.variables
	return out, nil
}

// renumber gives the buffers successive numbers in the order of their own.
func renumber(k *msl.Kernel) {
	buffers := slices.Clone(k.Buffers)
	slices.SortStableFunc(buffers, func(a, b *msl.Buffer) int { return cmp.Compare(a.Slot, b.Slot) })
	for i, b := range buffers {
		b.Slot = i
	}
}

// layoutChecks returns assertions that the compiler lays out structures like package msl.
func layoutChecks(layouts map[string]*msl.Layout) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(layouts)) {
		layout := layouts[name]
		fmt.Fprintf(&b, "  static_assert(sizeof(%s) == %d, \"size of a structure\");\n", name, layout.Size)
		for _, f := range layout.Fields {
			fmt.Fprintf(&b, "  static_assert(__builtin_offsetof(%s, %s) == %d, \"place of a field\");\n", name, f.Name, f.Offset)
		}
	}
	return b.String()
}

// nativeArguments returns the arguments of the kernel's call. Each converts to the type of its parameter, which may
// depend on template arguments. variables is the number of the kernel's own threadgroup variables.
func nativeArguments(k *msl.Kernel, values Values, variables int) []string {
	type argument struct {
		offset int
		text   string
	}
	var list []argument
	for _, b := range k.Buffers {
		text := fmt.Sprintf("mlxg::pointer_argument{buffers[%d]}", b.Slot)
		switch {
		case b.Texture != "":
			text = fmt.Sprintf("mlxg::texture_argument{%d}", b.Slot)
		case b.Reference:
			text = fmt.Sprintf("mlxg::reference_argument{buffers[%d]}", b.Slot)
		}
		list = append(list, argument{b.Pos.Offset, text})
	}
	for _, s := range k.Samplers {
		list = append(list, argument{s.Pos.Offset, "metal::sampler(" + values.Samplers[s.Name] + ")"})
	}
	for i, a := range k.Threadgroup {
		kind := "threadgroup_pointer"
		if a.Reference {
			kind = "threadgroup_reference"
		}
		list = append(list, argument{a.Pos.Offset, fmt.Sprintf("mlxg::%s<%d, %d>{}", kind, values.Sizes[a.Name], variables+i)})
	}
	for _, a := range k.Attributes {
		list = append(list, argument{a.Pos.Offset, convert(a.Type, msl.PositionTypes[a.Attribute], "p."+a.Attribute)})
	}
	slices.SortFunc(list, func(a, b argument) int { return cmp.Compare(a.offset, b.offset) })
	var texts []string
	for _, a := range list {
		texts = append(texts, a.text)
	}
	return texts
}

// mlxNames are the names that MLX declares before a kernel.
var mlxNames = []string{"float16_t", "bfloat16_t", "complex64_t", "Limits", "elem_to_loc", "ceildiv", "ConditionalType"}

// usesMLXPrelude reports whether the text uses a name that MLX declares before a kernel, and declares none of them.
func (h *rewriter) usesMLXPrelude() bool {
	used := false
	for i, t := range h.Tokens {
		if t.Kind != msl.Identifier || !slices.Contains(mlxNames, t.Text) {
			continue
		}
		used = true
		previous, next := h.At(i-1), h.At(i+1)
		if previous.Is("struct") || previous.Is("using") && next.Is("=") || next.Is(";") && previous.Kind == msl.Identifier &&
			slices.ContainsFunc(h.Tokens[max(0, i-6):i], func(t msl.Token) bool { return t.Is("typedef") }) {
			return false
		}
	}
	for _, it := range h.items {
		if it.Kind == msl.FunctionItem && slices.Contains(mlxNames, h.At(it.Params-1).Text) {
			return false
		}
	}
	return used
}
