package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/addrspace/prelude"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// finish joins the include of metal_host.h, the rewritten text and the entry function.
func (h *rewriter) finish() (*HostSource, error) {
	kernel, arguments, err := h.GeneratedKernel(h.items)
	if err != nil {
		return nil, err
	}
	out := &HostSource{KernelName: kernel.Name}
	if out.Buffers, err = hostBuffers(kernel); err != nil {
		return nil, err
	}
	ending, scope, _ := h.wrap()
	text := h.edits.Apply()
	var b strings.Builder
	b.WriteString("#include \"metal_host.h\"\n")
	b.WriteString(text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(ending)
	b.WriteString(entry(kernel, arguments, len(out.Buffers), scope))
	out.Source = b.String()
	return out, nil
}

// hostBuffers returns a kernel's buffers, indexed by their numbers. A missing number has an empty entry.
func hostBuffers(kernel *msl.Kernel) ([]HostBuffer, error) {
	var out []HostBuffer
	buffers := slices.Clone(kernel.Buffers)
	slices.SortFunc(buffers, func(a, b *msl.Buffer) int { return cmp.Compare(a.Slot, b.Slot) })
	for _, b := range buffers {
		const most = 64
		if b.Slot >= most {
			return nil, msl.Errorf(b.Pos, "the buffer number is %d; it must be from 0 to %d", b.Slot, most-1)
		}
		for len(out) < b.Slot {
			out = append(out, HostBuffer{}) // a missing number
		}
		out = append(out, HostBuffer{b.Name, b.Element, b.Reference, b.Writable()})
	}
	return out, nil
}

// entry returns the C++ text of the function that the executor calls.
func entry(k *msl.Kernel, arguments []string, buffers int, scope string) string {
	list := callArguments(k, func(b *msl.Buffer) string {
		constness := "const "
		if b.Writable() {
			constness = ""
		}
		return fmt.Sprintf("static_cast<%s%s*>(buffers[%d])", constness, b.Element, b.Slot)
	}, func(attribute string) string { return "p." + attribute })

	var b strings.Builder
	// The executor's header declares the entry at global scope.
	b.WriteString("namespace {\nvoid mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {\n  " +
		"(void)buffers; (void)p;\n")
	if scope != "" {
		fmt.Fprintf(&b, "  using namespace %s;\n", scope)
		scope += "::"
	}
	b.WriteString(elementNames(k, arguments))
	b.WriteString("  " + kernelCall(k, arguments, list, scope) + ";\n}\n}\n")
	fmt.Fprintf(&b, "extern \"C\" const mlxg::entry mlxgrad_entry = {%q, %d, mlxg_invoke};\n", k.Name, buffers)
	return b.String()
}

// callArguments returns the arguments of the kernel's call in the order of its parameters. pointer returns a pointer
// to a buffer, which is dereferenced for a reference parameter. position returns a thread position.
func callArguments(k *msl.Kernel, pointer func(*msl.Buffer) string, position func(attribute string) string) []string {
	type argument struct {
		offset int
		text   string
	}
	var list []argument
	for _, b := range k.Buffers {
		text := pointer(b)
		if b.Reference {
			text = "*" + text
		}
		list = append(list, argument{b.Pos.Offset, text})
	}
	for _, a := range k.Attributes {
		list = append(list, argument{a.Pos.Offset, convert(a.Type,
			msl.PositionTypes[a.Attribute], position(a.Attribute))})
	}
	slices.SortFunc(list, func(a, b argument) int { return cmp.Compare(a.offset, b.offset) })
	var texts []string
	for _, a := range list {
		texts = append(texts, a.text)
	}
	return texts
}

// elementNames returns declarations of the template parameters that occur in the buffers' types.
func elementNames(k *msl.Kernel, arguments []string) string {
	mentioned := map[string]bool{}
	for _, b := range k.Buffers {
		for _, t := range msl.Tokenize(b.Element) {
			mentioned[t.Text] = true
		}
	}
	var b strings.Builder
	for i, a := range arguments {
		if !mentioned[k.Template[i].Name] {
			continue
		}
		switch t := k.Template[i]; t.Kind {
		case msl.TypeParameter:
			fmt.Fprintf(&b, "  using %s = %s;\n", t.Name, a)
		default:
			fmt.Fprintf(&b, "  constexpr %s %s = %s;\n", t.Type, t.Name, a)
		}
	}
	return b.String()
}

// kernelCall returns a call of the kernel, with its template arguments if it has any.
func kernelCall(k *msl.Kernel, arguments, list []string, scope string) string {
	name := scope + k.Name
	if len(arguments) > 0 {
		name += "<" + strings.Join(arguments, ", ") + ">"
	}
	return name + "(\n      " + strings.Join(list, ",\n      ") + ")"
}

// wrap puts the text into a namespace within namespace metal, so that its names hide names of the C library (gamma,
// y1, index). It returns the closing text and the name of the namespace. Both are empty for a text that depends on
// being in the global namespace, and obstacle is then the token that depends on it.
func (h *rewriter) wrap() (ending, scope string, obstacle int) {
	for i, t := range h.Tokens {
		if t.Is("namespace") && h.At(i+1).Is("metal") && !h.At(i-1).Is("using") {
			return "", "", i
		}
		if t.Is("::") && !h.At(i+1).Is("metal") {
			if p := h.At(i - 1); p.Kind != msl.Identifier && !p.Is(">") || msl.ExpressionWords[p.Text] {
				return "", "", i
			}
		}
	}
	at, ok := h.beforeCode()
	if !ok {
		return "", "", 0
	}
	// A function of the text with the name of one of Metal's is an overload: it must not hide Metal's functions.
	declared, used := "", ""
	for _, name := range h.ownOverloads() {
		declared += "void " + name + "(detail::nothing&); " // ensures that the using-declaration finds a function
		used += "using metal::" + name + "; "
	}
	if h.names(limitsBase) {
		used += "template <class T> struct " + limitsBase + " : metal::numeric_limits<T> {}; " +
			"template <class T> struct numeric_limits : " + limitsBase + "<T> {}; "
	}
	h.edits.Insert(at, "namespace metal { "+declared+"namespace mlxg_shader { "+used)
	return "}}\n", "metal::mlxg_shader", 0
}

// limitsBase is the base class of numeric_limits in Apple's library. Shaders specialize it for their own types.
const limitsBase = "_numeric_limits_impl"

// names reports whether the text has this identifier.
func (h *rewriter) names(name string) bool {
	return slices.ContainsFunc(h.Tokens, func(t msl.Token) bool { return t.Is(name) })
}

// ownOverloads returns the functions of the text, outside of namespaces, that have the name of a function of Metal.
func (h *rewriter) ownOverloads() []string {
	var names []string
	for _, it := range h.items {
		if it.Scope != msl.NamespaceScope || len(it.Namespaces) > 0 || it.Params < 1 || it.Kernel ||
			it.Kind != msl.FunctionItem && it.Kind != msl.OtherItem {
			continue
		}
		name := h.At(it.Params - 1).Text
		if prelude.Functions()[name] && !slices.Contains(names, name) && !h.At(it.Params-2).Is("::") {
			names = append(names, name)
		}
	}
	return names
}

// beforeCode returns the offset of the first line with code, or of an earlier line. The line is outside of all #if
// blocks and directives. ok is false if there is no such line.
func (h *rewriter) beforeCode() (at int, ok bool) {
	depth, line := 0, 1 // at is the offset of the line
	for i, t := range h.All {
		if t.Kind == msl.Comment && t.Directive == 0 {
			continue
		}
		if t.Directive == 0 {
			break
		}
		if !h.BeginsDirective(i) {
			continue
		}
		if depth == 0 && t.Line > line {
			return at, true
		}
		switch name, _ := h.Directive(i); name {
		case "if", "ifdef", "ifndef":
			depth++
		case "endif":
			depth--
		}
		end := h.All[h.DirectiveEnd(i)-1].End()
		newline := strings.IndexByte(h.Text[end:], '\n')
		if newline < 0 {
			return 0, false
		}
		at = end + newline + 1
		line = 1 + strings.Count(h.Text[:at], "\n")
	}
	return at, depth == 0
}
