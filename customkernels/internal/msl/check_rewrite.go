package msl

import (
	"fmt"
	"strings"
)

// checkWriter turns a generated text into C++ for OpenCL, line by line.
type checkWriter struct {
	*structure
	items []item
	code  *code
	edits edits
	// anyReference leaves the address space out of references to constants in thread memory.
	anyReference bool
	macros       map[string]bool // that the text defines
}

// openclSpaces holds OpenCL's words for Metal's address spaces.
var openclSpaces = map[AddressSpace]string{
	Device: "__global", Constant: "__constant", Threadgroup: "__local", thread: "__private",
}

// openclWords holds the names that OpenCL reserves and Metal does not.
var openclWords = map[string]bool{
	"global": true, "local": true, "generic": true, "private": true, "read_only": true, "write_only": true,
	"read_write": true, "pipe": true, "event_t": true, "queue_t": true, "clk_event_t": true,
	"reserve_id_t": true, "sampler_t": true, "ndrange_t": true, "addrspace_cast": true, "vec_step": true,
	"image1d_t": true, "image2d_t": true, "image3d_t": true,
}

// translate rewrites the text and adds the two violations that must be found.
func (w *checkWriter) translate() (string, error) {
	if err := w.threadgroupVariables(); err != nil {
		return "", err
	}
	w.dropAttributesAndIncludes()
	w.spaces()
	w.names()
	w.constructors()
	w.initializers()
	w.unqualified()
	w.members()
	if err := w.canary(); err != nil {
		return "", err
	}
	return w.edits.apply() + "\n#line 1 \"" + canaryEnd + "\"\n" +
		"void mlxg_canary_end(__global float* mlxg_a, __local float* mlxg_b) { mlxg_a = mlxg_b; }\n", nil
}

func (w *checkWriter) replace(t Token, with string) { w.edits.replace(t.Offset, t.End(), with) }

func (w *checkWriter) insert(offset int, text string) {
	w.edits.list = append(w.edits.list, edit{span{offset, offset}, text})
}

// threadgroupVariables makes references of them: OpenCL allows such variables nowhere but at the
// top of a kernel.
func (w *checkWriter) threadgroupVariables() error {
	variables, err := w.findThreadgroupVariables(w.code, w.items)
	if err != nil {
		return err
	}
	for id, v := range variables {
		kind := fmt.Sprintf("%stg_type_%d", prefix, id)
		separator := ""
		if !v.first {
			separator = "; "
		}
		w.edits.replace(v.start, v.end, fmt.Sprintf("%stypedef %s %s %s; __local %s& %s = ::metal::mlxg_threadgroup<%s>()",
			separator, v.element, kind, v.dimensions, kind, v.name, kind))
	}
	return nil
}

// dropAttributesAndIncludes removes what OpenCL does not know.
func (w *checkWriter) dropAttributesAndIncludes() {
	for i := 0; i < len(w.tokens); i++ {
		if w.isAttribute(i) {
			w.edits.blank(w.tokens[i].Offset, w.tokens[w.match[i]].End())
			i = w.match[i]
		}
	}
	for i, t := range w.all {
		if t.Kind != HeaderName {
			continue
		}
		first := i
		for first > 0 && w.all[first-1].Directive == t.Directive {
			first--
		}
		w.edits.blank(w.all[first].Offset, t.End())
	}
}

// spaces translates the address spaces.
func (w *checkWriter) spaces() {
	bodies := functionBodies(w.structure, w.items)
	for _, q := range w.code.qualifiers() {
		t := w.code.tokens[q.token]
		if !isSpace(t.Text) {
			continue // a macro, translated where it is defined
		}
		switch {
		case q.constructor && q.space == thread: // OpenCL does not see that a temporary is one
			w.replace(t, "")
		case w.anyReference && q.space == thread && w.code.constReference(q.token):
			w.replace(t, "")
		case q.space == Constant && !q.pointer && q.constness && bodies.contains(t.Offset):
			w.replace(t, "const")
		case q.space == Constant && !q.pointer && bodies.contains(t.Offset):
			w.replace(t, "")
		case q.space == Constant && q.pointer && q.constness && w.code.neighbour(q.token, 1).is("char"):
			w.replace(t, "const __constant") // which string literals convert to in C++
		default:
			w.replace(t, openclSpaces[q.space])
		}
	}
}

// names drops the word kernel, renames what OpenCL reserves, and makes float literals of bfloat ones
// and of those without a suffix.
func (w *checkWriter) names() {
	for i, t := range w.code.tokens {
		next := w.code.neighbour(i, 1)
		switch {
		case t.Kind == Number:
			lower := strings.ToLower(t.Text)
			if strings.HasSuffix(lower, "bf") && !strings.HasPrefix(lower, "0x") {
				w.replace(t, "bfloat("+t.Text[:len(t.Text)-2]+"f)")
			} else if floatLiteral(t.Text) {
				w.replace(t, t.Text+"f")
			}
		case t.Kind != Identifier:
		case t.Text == "kernel" && (next.Kind == Identifier || next.is("[")):
			w.replace(t, "")
		case t.Text == "private" && next.is(":"):
		case openclWords[t.Text] || t.Text == "kernel":
			w.replace(t, prefix+t.Text)
		}
	}
}

// constructors rewrites what OpenCL's vectors lack: construction from several values and conversion.
//
//	float4(a, b)            ::metal::mlxg_make<float4>(a, b)
//	static_cast<T>(x)       ::metal::mlxg_make<T>(x)
func (w *checkWriter) constructors() {
	values, pointers := w.typeNames()
	for i, t := range w.code.tokens {
		if t.Kind != Identifier {
			continue
		}
		previous, next := w.code.neighbour(i, -1), w.code.neighbour(i, 1)
		if previous.is(".") || previous.is("->") || previous.is("~") || previous.is("operator") || previous.is("##") {
			continue
		}
		qualifier := "::metal::"
		if previous.is("::") {
			if !w.code.neighbour(i, -2).is("metal") {
				continue
			}
			qualifier = ""
		}
		switch {
		case t.Text == "static_cast" && next.is("<"):
			if j := w.code.step(i, 1); j >= 0 {
				if end := w.code.overAngles(j, 1); end > 0 && !w.pointerWithin(j, end, pointers) {
					w.replace(t, qualifier+"mlxg_make")
				}
			}
		case (t.Text == "vec" || t.Text == "packed_vec") && next.is("<"):
			j := w.code.step(i, 1)
			end := w.code.overAngles(j, 1)
			if end < 0 {
				continue
			}
			if behind := w.code.neighbour(end, 1); behind.is("(") || behind.is("{") {
				w.insert(t.Offset, qualifier+"mlxg_make<::metal::")
				w.insert(w.code.tokens[end].End(), ">")
				w.parentheses(w.code.step(end, 1))
			}
		case (isVector(t.Text) || values[t.Text]) && (next.is("(") || next.is("{")):
			if inner := w.code.neighbour(i, 2); (inner.is("&") || inner.is("*")) && w.code.neighbour(i, 4).is(")") && w.code.neighbour(i, 5).is("[") {
				continue // T (&name)[n]
			}
			if next.is("{") && (previous.is("struct") || previous.is("class") || previous.is(")") || previous.is("->")) {
				continue
			}
			w.replace(t, qualifier+"mlxg_make<"+t.Text+">")
			w.parentheses(w.code.step(i, 1))
		}
	}
}

// parentheses turns the braces at a token of the code, if there are any, into parentheses.
func (w *checkWriter) parentheses(i int) {
	if i < 0 || !w.code.tokens[i].is("{") {
		return
	}
	depth := 0
	for j := i; j >= 0; j = w.code.step(j, 1) {
		if w.code.tokens[j].is("{") {
			depth++
		} else if w.code.tokens[j].is("}") {
			depth--
		}
		if depth == 0 {
			w.replace(w.code.tokens[i], "(")
			w.replace(w.code.tokens[j], ")")
			return
		}
	}
}

// pointerWithin reports whether the tokens from j to end name a pointer or reference.
func (w *checkWriter) pointerWithin(j, end int, pointers map[string]bool) bool {
	for ; j <= end; j++ {
		if t := w.code.tokens[j]; t.is("*") || t.is("&") || pointers[t.Text] {
			return true
		}
	}
	return false
}

// typeNames lists the names of types that the text declares as template parameters or aliases: those of
// values and those of pointers.
func (w *checkWriter) typeNames() (values, pointers map[string]bool) {
	values, pointers = map[string]bool{}, map[string]bool{}
	for i, t := range w.code.tokens {
		name := w.code.neighbour(i, 1)
		follow := w.code.neighbour(i, 2)
		switch {
		case (t.is("typename") || t.is("class")) && name.Kind == Identifier &&
			(follow.is(",") || follow.is(">") || follow.is("=")) &&
			(w.code.neighbour(i, -1).is("<") || w.code.neighbour(i, -1).is(",")):
			values[name.Text] = true
		case t.is("using") && follow.is("=") || t.is("typedef"):
			pointer, last := false, name
			for j := w.code.step(i, 1); j >= 0 && !w.code.tokens[j].is(";"); j = w.code.step(j, 1) {
				part := w.code.tokens[j]
				pointer = pointer || part.is("*") || part.is("&") || isSpace(part.Text) || part.is("[")
				if part.is("{") || part.is("(") {
					pointer = true
					break
				}
				if part.Kind == Identifier && t.is("typedef") {
					last = part
				}
			}
			if pointer {
				pointers[last.Text] = true
			} else {
				values[last.Text] = true
			}
		}
	}
	for name := range pointers {
		delete(values, name)
	}
	return values, pointers
}

// isVector recognizes the names of vector types, packed ones too.
func isVector(text string) bool {
	text = strings.TrimPrefix(text, "packed_")
	if len(text) < 4 || text[len(text)-1] < '2' || text[len(text)-1] > '4' {
		return false
	}
	switch text[:len(text)-1] {
	case "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "bfloat", "float":
		return true
	}
	return false
}

// unqualified puts pointers and references without an address space into thread memory, as Metal does:
// arguments of functions and local variables.
func (w *checkWriter) unqualified() {
	_, pointers := w.typeNames()
	bodies := functionBodies(w.structure, w.items)
	for _, it := range w.items {
		if it.kind != functionItem || it.scope != namespaceScope || !w.at(it.params).is("(") {
			continue
		}
		for _, part := range w.split(it.params+1, w.match[it.params]) {
			if w.unqualifiedPointer(part[0], part[1], pointers) && !(w.anyReference && w.constReference(part[0], part[1])) {
				w.insert(w.tokens[part[0]].Offset, "__private ")
			}
		}
	}
	for i, t := range w.tokens {
		if !t.is(";") && !t.is("{") && !t.is("}") || !bodies.contains(t.Offset+1) || i+1 >= len(w.tokens) {
			continue
		}
		first, end := w.typeName(i + 1)
		if end == first || expressionWord[w.tokens[first].Text] || w.tokens[first].is("using") || w.tokens[first].is("typedef") {
			continue
		}
		if (w.at(end).is("*") || w.at(end).is("&")) && w.at(end+1).Kind == Identifier &&
			(w.at(end+2).is("=") || w.at(end+2).is(";") || w.at(end+2).is(",")) &&
			w.unqualifiedPointer(first, end+1, pointers) {
			w.insert(w.tokens[first].Offset, "__private ")
		}
	}
}

// members puts the objects of member functions that name no address space into thread memory, as Metal
// does.
func (w *checkWriter) members() {
	for _, it := range w.items {
		if it.scope != classScope || it.params <= it.start+1 || it.kind != functionItem && it.kind != otherItem {
			continue // static_assert and macros have nothing before their names
		}
		end := w.match[it.params]
		bound := w.code.classes[w.at(it.params-1).Text] || w.at(it.params-2).is("~") // a constructor or destructor
		for i := it.start; i < it.params; i++ {
			bound = bound || w.tokens[i].is("static") || w.tokens[i].is("friend") || w.tokens[i].is("using")
		}
		for i := end + 1; i <= it.last && !w.tokens[i].is("{") && !w.tokens[i].is(";"); i++ {
			bound = bound || isSpace(w.tokens[i].Text) || w.code.aliases[w.tokens[i].Text] != ""
		}
		if !bound {
			w.insert(w.tokens[end].End(), " __private")
		}
	}
}

// constReference reports whether the tokens [first, end) declare a reference to a constant.
func (w *checkWriter) constReference(first, end int) bool {
	constant := false
	for i := first; i < end; i++ {
		switch t := w.tokens[i]; {
		case t.is("<"):
			if j := w.skipAngles(i, end); j > i {
				i = j - 1
			}
		case t.is("const"):
			constant = true
		case t.is("&"):
			return constant
		case t.is("*"), t.is("("), t.is("="):
			return false
		}
	}
	return false
}

// unqualifiedPointer reports whether the tokens [first, end) declare a pointer or reference and name no
// address space.
func (w *checkWriter) unqualifiedPointer(first, end int, pointers map[string]bool) bool {
	pointer := false
	for i := first; i < end; i++ {
		switch t := w.tokens[i]; {
		case t.is("<"):
			if j := w.skipAngles(i, end); j > i {
				i = j - 1
			}
		case t.is("*") || t.is("&"):
			pointer = true
		case t.is("="):
			return pointer
		case isSpace(t.Text) || t.is("auto") || pointers[t.Text]:
			return false
		case w.code.aliases[t.Text] != "":
			return false
		}
	}
	return pointer
}

// canary puts a violation at the beginning of the kernel's body, one that depends on the template's
// parameters if there are any.
func (w *checkWriter) canary() error {
	h := hostWriter{structure: w.structure, items: w.items, code: w.code}
	kernel, _, err := h.generatedKernel()
	if err != nil {
		return err
	}
	value := "metal::mlxg_canary_type<>()"
	if len(kernel.Template) > 0 {
		value = "metal::mlxg_canary_value<" + kernel.Template[0].Name + ">()"
		if kernel.Template[0].Kind == TypeParameter {
			value = "metal::mlxg_canary_type<" + kernel.Template[0].Name + ">()"
		}
	}
	w.insert(kernel.BodyPos.Offset, fmt.Sprintf("\n#line 1 %q\n{ __global float* mlxg_canary = %s; }\n#line %d %q\n",
		canaryKernel, value, kernel.BodyPos.Line, checkedText))
	return nil
}
