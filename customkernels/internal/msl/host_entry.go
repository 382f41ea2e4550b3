package msl

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// finish puts the C++ text together: the include, the rewritten text, the entry.
func (h *hostWriter) finish() (*HostSource, error) {
	kernel, arguments, err := h.generatedKernel()
	if err != nil {
		return nil, err
	}
	out := &HostSource{KernelName: kernel.Name, UsesFibers: h.cooperates()}
	if out.Buffers, err = hostBuffers(kernel); err != nil {
		return nil, err
	}
	ending, scope := h.wrap()
	text := h.edits.apply()
	var b strings.Builder
	b.WriteString("#include \"metal_host.h\"\n")
	b.WriteString(text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(ending)
	b.WriteString(entry(kernel, arguments, len(out.Buffers), out.UsesFibers, scope))
	out.Source = b.String()
	return out, nil
}

// hostBuffers lists a kernel's buffers by their numbers.
func hostBuffers(kernel *Kernel) ([]HostBuffer, error) {
	var out []HostBuffer
	buffers := slices.Clone(kernel.Buffers)
	slices.SortFunc(buffers, func(a, b *Buffer) int { return cmp.Compare(a.Slot, b.Slot) })
	for _, b := range buffers {
		const most = 64
		if b.Slot >= most {
			return nil, errorf(b.Pos, "the buffer number %d is too great; number buffers from 0 to %d", b.Slot, most-1)
		}
		for len(out) < b.Slot {
			out = append(out, HostBuffer{}) // a number that no buffer has
		}
		out = append(out, HostBuffer{b.Name, b.Element, b.Reference, b.Writable()})
	}
	return out, nil
}

// generatedKernel reads the kernel's signature and the template arguments of its instantiation.
func (h *hostWriter) generatedKernel() (*Kernel, []string, error) {
	p := parser{structure: h.structure, items: h.items, file: &File{}}
	p.collectMacros()
	// What MLX generates stands last; of a file with several kernels it is the one that the
	// last instantiation names.
	instantiated := h.instantiated()
	chosen := -1
	for i, it := range h.items {
		if it.kernel && it.kind == functionItem && (chosen < 0 || len(instantiated) == 0 || instantiated[h.at(it.params-1).Text]) {
			chosen = i
		}
	}
	if chosen >= 0 {
		if err := p.kernel(h.items[chosen]); err != nil {
			return nil, nil, err
		}
	}
	if len(p.file.Kernels) == 0 {
		return nil, nil, h.errorAt(0, "the text has no kernel; give the complete text that MLX generates")
	}
	kernel := p.file.Kernels[0]
	if len(kernel.Threadgroup) > 0 {
		a := kernel.Threadgroup[0]
		return nil, nil, errorf(a.Pos, "the threadgroup argument %s has no size; give it one when the kernel is loaded", a.Name)
	}
	if len(kernel.Template) == 0 {
		return kernel, nil, nil
	}
	for _, it := range slices.Backward(h.items) {
		if it.kind != instantiation {
			continue
		}
		for i := it.first; i < it.last; i++ {
			if !h.tokens[i].is(kernel.Name) || !h.at(i+1).is("<") {
				continue
			}
			var arguments []string
			for _, part := range h.split(i+2, h.skipAngles(i+1, it.last)-1) {
				arguments = append(arguments, h.join(part[0], part[1]-1))
			}
			if len(arguments) != len(kernel.Template) {
				return nil, nil, h.errorAt(i, "the instantiation gives %d template arguments, the kernel has %d parameters; give each one",
					len(arguments), len(kernel.Template))
			}
			return kernel, arguments, nil
		}
	}
	return nil, nil, errorf(kernel.Pos, "the kernel is a template and never instantiated; give the complete text that MLX generates")
}

// instantiated returns the names of templates in the last explicit instantiation of a kernel,
// none if there is no such.
func (h *hostWriter) instantiated() map[string]bool {
	for _, it := range slices.Backward(h.items) {
		if it.kind != instantiation || !it.kernel && !h.isAttribute(it.first+1) {
			continue
		}
		names := map[string]bool{}
		for i := it.first; i < it.last; i++ {
			if h.tokens[i].Kind == Identifier && h.at(i+1).is("<") {
				names[h.tokens[i].Text] = true
			}
		}
		return names
	}
	return nil
}

// entry writes what the executor calls.
func entry(k *Kernel, arguments []string, buffers int, fibers bool, scope string) string {
	list := callArguments(k, func(b *Buffer) string {
		constness := "const "
		if b.Writable() {
			constness = ""
		}
		return fmt.Sprintf("static_cast<%s%s*>(buffers[%d])", constness, b.Element, b.Slot)
	}, func(attribute string) string { return "p." + attribute })

	var b strings.Builder
	// At global scope, where the executor's header declares it.
	b.WriteString("namespace {\nvoid mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {\n  (void)buffers; (void)p;\n")
	if scope != "" {
		fmt.Fprintf(&b, "  using namespace %s;\n", scope)
		scope += "::"
	}
	b.WriteString(elementNames(k, arguments))
	b.WriteString("  " + kernelCall(k, arguments, list, scope) + ";\n}\n}\n")
	used := 0
	if fibers {
		used = 1
	}
	fmt.Fprintf(&b, "extern \"C\" const mlxg::entry mlxgrad_entry = {%q, %d, %d, mlxg_invoke};\n", k.Name, buffers, used)
	return b.String()
}

// callArguments are what the kernel is called with, in the order of its parameters: pointers to
// its buffers, read through where it takes a reference, and positions.
func callArguments(k *Kernel, pointer func(*Buffer) string, position func(attribute string) string) []string {
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
		list = append(list, argument{a.Pos.Offset, convert(a.Type, attributeTypes[a.Attribute], position(a.Attribute))})
	}
	slices.SortFunc(list, func(a, b argument) int { return cmp.Compare(a.offset, b.offset) })
	var texts []string
	for _, a := range list {
		texts = append(texts, a.text)
	}
	return texts
}

// elementNames declares the template parameters that the types of buffers mention.
func elementNames(k *Kernel, arguments []string) string {
	mentioned := map[string]bool{}
	for _, b := range k.Buffers {
		for _, t := range Tokenize(b.Element) {
			mentioned[t.Text] = true
		}
	}
	var b strings.Builder
	for i, a := range arguments {
		if !mentioned[k.Template[i].Name] {
			continue
		}
		switch t := k.Template[i]; t.Kind {
		case TypeParameter:
			fmt.Fprintf(&b, "  using %s = %s;\n", t.Name, a)
		default:
			fmt.Fprintf(&b, "  constexpr %s %s = %s;\n", t.Type, t.Name, a)
		}
	}
	return b.String()
}

// kernelCall calls the kernel, an instance of it if it is a template.
func kernelCall(k *Kernel, arguments, list []string, scope string) string {
	name := scope + k.Name
	if len(arguments) > 0 {
		name += "<" + strings.Join(arguments, ", ") + ">"
	}
	return name + "(\n      " + strings.Join(list, ",\n      ") + ")"
}

// cooperates looks for anything that makes threads wait for each other, in macros too.
func (h *hostWriter) cooperates() bool {
	for _, t := range h.code.tokens {
		if t.Kind != Identifier {
			continue
		}
		if _, position := attributeTypes[t.Text]; position {
			continue
		}
		switch {
		case strings.HasPrefix(t.Text, "simd_"), strings.HasPrefix(t.Text, "quad_"),
			strings.HasPrefix(t.Text, "simdgroup_"), strings.Contains(t.Text, "simdgroup_matrix"),
			strings.Contains(t.Text, "barrier"), t.Text == "threadgroup":
			return true
		}
	}
	return false
}

// wrap puts the text into a namespace of its own within namespace metal, so that its names
// hide those of the C library (gamma, y1, index …). It returns what closes it and its
// name. A text that relies on being global stays so.
func (h *hostWriter) wrap() (ending, scope string) {
	for i, t := range h.tokens {
		if t.is("namespace") && h.at(i+1).is("metal") && !h.at(i-1).is("using") {
			return "", ""
		}
		if t.is("::") && !h.at(i+1).is("metal") {
			if p := h.at(i - 1); p.Kind != Identifier && !p.is(">") || expressionWord[p.Text] {
				return "", ""
			}
		}
	}
	at, ok := h.beforeCode()
	if !ok {
		return "", ""
	}
	// A function of the text is one more of those that Metal has of its name, and hides none of them.
	declared, used := "", ""
	for _, name := range h.ownOverloads() {
		declared += "void " + name + "(detail::nothing&); " // there is one to use, whatever the library has
		used += "using metal::" + name + "; "
	}
	h.edits.list = append(h.edits.list, edit{span{at, at}, "namespace metal { " + declared + "namespace mlxg_shader { " + used})
	return "}}\n", "metal::mlxg_shader"
}

// ownOverloads lists the functions of the text, outside of namespaces, that have the name of one of Metal's.
func (h *hostWriter) ownOverloads() []string {
	var names []string
	for _, it := range h.items {
		if it.scope != namespaceScope || len(it.namespaces) > 0 || it.params < 1 || it.kernel || it.kind != functionItem && it.kind != otherItem {
			continue
		}
		name := h.at(it.params - 1).Text
		if libraryFunctions()[name] && !slices.Contains(names, name) && !h.at(it.params-2).is("::") {
			names = append(names, name)
		}
	}
	return names
}

var (
	preludeType     = regexp.MustCompile(`\b(?:struct|enum class|enum) (\w+)|\busing (\w+) =`)
	preludeFunction = regexp.MustCompile(`MLXG_(?:UNARY|BINARY|TERNARY|TEST)\((\w+)\)|TYPES\(MLXG_., (\w+)\)|\b(g##\w+|atomic_\w+##name\w*|\w+)\(`)
	preludeComment  = regexp.MustCompile(`//.*`)
)

// libraryFunctions holds the names of Metal's functions, those that the check of address spaces declares.
var libraryFunctions = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	text := preludeComment.ReplaceAllString(prelude, "")
	for _, m := range preludeFunction.FindAllStringSubmatch(text, -1) {
		name := m[1] + m[2] + m[3]
		if rest, ok := strings.CutPrefix(name, "g##"); ok {
			names["simd"+rest], names["quad"+rest] = true, true
		} else if !strings.HasPrefix(name, "mlxg_") {
			names[name] = true
		}
	}
	for _, m := range preludeType.FindAllStringSubmatch(text, -1) {
		delete(names, m[1]+m[2])
	}
	for _, word := range []string{"decltype", "float", "int", "sizeof"} { // of the language
		delete(names, word)
	}
	return names
})

// beforeCode finds the beginning of a line that has no code before it, is no preprocessor line
// and lies outside of all conditionals.
func (h *hostWriter) beforeCode() (at int, ok bool) {
	depth, line := 0, 1 // at is the beginning of the line
	for i, t := range h.all {
		if t.Kind == Comment && t.Directive == 0 {
			continue
		}
		if t.Directive == 0 {
			break
		}
		if !h.beginsDirective(i) {
			continue
		}
		if depth == 0 && t.Line > line {
			return at, true
		}
		switch name, _ := h.directive(i); name {
		case "if", "ifdef", "ifndef":
			depth++
		case "endif":
			depth--
		}
		end := h.all[h.directiveEnd(i)-1].End()
		newline := strings.IndexByte(h.text[end:], '\n')
		if newline < 0 {
			return 0, false
		}
		at = end + newline + 1
		line = 1 + strings.Count(h.text[:at], "\n")
	}
	return at, depth == 0
}
