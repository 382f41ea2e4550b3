package addrspace

import (
	"fmt"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// rewriter rewrites a generated text into C++ for OpenCL, line by line.
type rewriter struct {
	*msl.Structure
	items []msl.Item
	code  *msl.Code
	edits msl.Edits
	// anyReference omits the address space of references to const in thread memory, so that they bind to any object.
	anyReference bool
}

// openclSpaces holds OpenCL's words for Metal's address spaces.
var openclSpaces = map[msl.AddressSpace]string{
	msl.Device: "__global", msl.Constant: "__constant", msl.Threadgroup: "__local", msl.Thread: "__private",
}

// openclWords holds the words that OpenCL reserves and Metal does not.
var openclWords = map[string]bool{
	"global": true, "local": true, "generic": true, "private": true, "read_only": true, "write_only": true,
	"read_write": true, "pipe": true, "event_t": true, "queue_t": true, "clk_event_t": true,
	"reserve_id_t": true, "sampler_t": true, "ndrange_t": true, "addrspace_cast": true, "vec_step": true,
	"image1d_t": true, "image2d_t": true, "image3d_t": true,
}

// translate rewrites the text and adds the two canaries, violations that clang must report.
func (w *rewriter) translate() (string, error) {
	if err := w.threadgroupVariables(); err != nil {
		return "", err
	}
	w.dropAttributesAndIncludes()
	w.addressSpaces()
	w.names()
	w.constructors()
	w.initializers()
	w.unqualified()
	w.members()
	if err := w.canary(); err != nil {
		return "", err
	}
	return w.edits.Apply() + "\n#line 1 \"" + canaryEnd + "\"\n" +
		"void mlxg_canary_end(__global float* mlxg_a, __local float* mlxg_b) { mlxg_a = mlxg_b; }\n", nil
}

func (w *rewriter) replace(t msl.Token, with string) { w.edits.Replace(t.Offset, t.End(), with) }

func (w *rewriter) insert(offset int, text string) {
	w.edits.Insert(offset, text)
}

// threadgroupVariables replaces threadgroup variables by references, because OpenCL allows such variables only at the
// top of a kernel.
func (w *rewriter) threadgroupVariables() error {
	variables, err := w.ThreadgroupVariables(w.code, w.items)
	if err != nil {
		return err
	}
	for id, v := range variables {
		kind := fmt.Sprintf("%stg_type_%d", msl.Prefix, id)
		separator := ""
		if !v.First {
			separator = "; "
		}
		w.edits.Replace(v.Start, v.End, fmt.Sprintf("%stypedef %s %s %s; __local %s& %s = "+
			"::metal::mlxg_threadgroup<%s>()",
			separator, v.Element, kind, v.Dimensions, kind, v.Name, kind))
	}
	return nil
}

// dropAttributesAndIncludes removes attributes and includes, which OpenCL rejects.
func (w *rewriter) dropAttributesAndIncludes() {
	for i := 0; i < len(w.Tokens); i++ {
		if w.IsAttribute(i) {
			w.edits.Blank(w.Tokens[i].Offset, w.Tokens[w.Match[i]].End())
			i = w.Match[i]
		}
	}
	for i, t := range w.All {
		if t.Kind != msl.HeaderName {
			continue
		}
		first := i
		for first > 0 && w.All[first-1].Directive == t.Directive {
			first--
		}
		w.edits.Blank(w.All[first].Offset, t.End())
	}
}

// addressSpaces translates the address-space qualifiers.
func (w *rewriter) addressSpaces() {
	bodies := msl.FunctionBodies(w.Structure, w.items)
	for _, q := range w.code.Qualifiers() {
		t := w.code.Tokens[q.Token]
		if !msl.IsAddressSpace(t.Text) {
			continue // a macro, which is translated at its definition
		}
		switch {
		case q.Space == msl.Thread && w.otherSpaceFollows(q.Token): // "thread device T* p[2]": the variable's own space
			w.replace(t, "")
		case q.Constructor && q.Space == msl.Thread: // OpenCL does not place temporaries in thread memory
			w.replace(t, "")
		case w.anyReference && q.Space == msl.Thread && w.code.ConstReference(q.Token):
			w.replace(t, "")
		case q.Space == msl.Constant && !q.Pointer && q.NeedsConst && bodies.Contains(t.Offset):
			w.replace(t, "const")
		case q.Space == msl.Constant && !q.Pointer && bodies.Contains(t.Offset):
			w.replace(t, "")
		case q.Space == msl.Constant && q.Pointer && q.NeedsConst && w.code.Neighbor(q.Token, 1).Is("char"):
			w.replace(t, "const __constant") // C++ converts string literals to this type only
		default:
			w.replace(t, openclSpaces[q.Space])
		}
	}
}

// otherSpaceFollows reports whether the specifiers after token i contain another address space.
func (w *rewriter) otherSpaceFollows(i int) bool {
	for j := w.code.Step(i, 1); j >= 0 && w.code.Tokens[j].Kind == msl.Identifier; j = w.code.Step(j, 1) {
		if msl.IsAddressSpace(w.code.Tokens[j].Text) {
			return true
		}
	}
	return false
}

// names removes the word kernel, renames words that OpenCL reserves, appends f to literals without a suffix, and
// rewrites bfloat literals as conversions of float literals.
func (w *rewriter) names() {
	for i, t := range w.code.Tokens {
		next := w.code.Neighbor(i, 1)
		switch {
		case t.Kind == msl.Number:
			lower := strings.ToLower(t.Text)
			if strings.HasSuffix(lower, "bf") && !strings.HasPrefix(lower, "0x") {
				w.replace(t, "bfloat("+t.Text[:len(t.Text)-2]+"f)")
			} else if floatLiteral(t.Text) {
				w.replace(t, t.Text+"f")
			}
		case t.Kind != msl.Identifier:
		case t.Text == "kernel" && (next.Kind == msl.Identifier || next.Is("[")):
			w.replace(t, "")
		case t.Text == "private" && next.Is(":"):
		case openclWords[t.Text] || t.Text == "kernel":
			w.replace(t, msl.Prefix+t.Text)
		}
	}
}

// constructors rewrites construction from several values and conversions, which OpenCL's vectors do not have:
//
//	float4(a, b)            ::metal::mlxg_make<float4>(a, b)
//	static_cast<T>(x)       ::metal::mlxg_make<T>(x)
func (w *rewriter) constructors() {
	values, pointers := w.typeNames()
	for i, t := range w.code.Tokens {
		if t.Kind != msl.Identifier {
			continue
		}
		previous, next := w.code.Neighbor(i, -1), w.code.Neighbor(i, 1)
		if previous.Is(".") || previous.Is("->") || previous.Is("~") || previous.Is("operator") || previous.Is("##") {
			continue
		}
		qualifier := "::metal::"
		if previous.Is("::") {
			if !w.code.Neighbor(i, -2).Is("metal") {
				continue
			}
			qualifier = ""
		}
		switch {
		case t.Text == "static_cast" && next.Is("<"):
			if j := w.code.Step(i, 1); j >= 0 {
				if end := w.code.MatchingAngle(j, 1); end > 0 && !w.pointerWithin(j, end, pointers) {
					w.replace(t, qualifier+"mlxg_make")
				}
			}
		case (t.Text == "vec" || t.Text == "packed_vec") && next.Is("<"):
			j := w.code.Step(i, 1)
			end := w.code.MatchingAngle(j, 1)
			if end < 0 {
				continue
			}
			if behind := w.code.Neighbor(end, 1); behind.Is("(") || behind.Is("{") {
				w.insert(t.Offset, qualifier+"mlxg_make<::metal::")
				w.insert(w.code.Tokens[end].End(), ">")
				w.parentheses(w.code.Step(end, 1))
			}
		case (isVector(t.Text) || values[t.Text]) && (next.Is("(") || next.Is("{")):
			if inner := w.code.Neighbor(i, 2); (inner.Is("&") || inner.Is("*")) && w.code.Neighbor(i, 4).Is(")") &&
				w.code.Neighbor(i, 5).Is("[") {
				continue // T (&name)[n]
			}
			if next.Is("{") && (previous.Is("struct") || previous.Is("class") || previous.Is(")") ||
				previous.Is("->")) {
				continue
			}
			w.replace(t, qualifier+"mlxg_make<"+t.Text+">")
			w.parentheses(w.code.Step(i, 1))
		}
	}
}

// parentheses replaces the braces at token i by parentheses, if there are any.
func (w *rewriter) parentheses(i int) {
	if i < 0 || !w.code.Tokens[i].Is("{") {
		return
	}
	depth := 0
	for j := i; j >= 0; j = w.code.Step(j, 1) {
		if w.code.Tokens[j].Is("{") {
			depth++
		} else if w.code.Tokens[j].Is("}") {
			depth--
		}
		if depth == 0 {
			w.replace(w.code.Tokens[i], "(")
			w.replace(w.code.Tokens[j], ")")
			return
		}
	}
}

// pointerWithin reports whether the tokens from j to end name a pointer or reference.
func (w *rewriter) pointerWithin(j, end int, pointers map[string]bool) bool {
	for ; j <= end; j++ {
		if t := w.code.Tokens[j]; t.Is("*") || t.Is("&") || pointers[t.Text] {
			return true
		}
	}
	return false
}

// typeNames returns the types that the text declares as template parameters or aliases, separately for values and
// pointers.
func (w *rewriter) typeNames() (values, pointers map[string]bool) {
	values, pointers = map[string]bool{}, map[string]bool{}
	for i, t := range w.code.Tokens {
		name := w.code.Neighbor(i, 1)
		follow := w.code.Neighbor(i, 2)
		switch {
		case (t.Is("typename") || t.Is("class")) && name.Kind == msl.Identifier &&
			(follow.Is(",") || follow.Is(">") || follow.Is("=")) &&
			(w.code.Neighbor(i, -1).Is("<") || w.code.Neighbor(i, -1).Is(",")):
			values[name.Text] = true
		case t.Is("using") && follow.Is("=") || t.Is("typedef"):
			pointer, last := false, name
			for j := w.code.Step(i, 1); j >= 0 && !w.code.Tokens[j].Is(";"); j = w.code.Step(j, 1) {
				part := w.code.Tokens[j]
				pointer = pointer || part.Is("*") || part.Is("&") || msl.IsAddressSpace(part.Text) || part.Is("[")
				if part.Is("{") || part.Is("(") {
					pointer = true
					break
				}
				if part.Kind == msl.Identifier && t.Is("typedef") {
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

// isVector reports whether a name is a vector type or packed vector type.
func isVector(text string) bool {
	for _, prefix := range []string{"packed_", "vector_", "simd_"} {
		text = strings.TrimPrefix(text, prefix)
	}
	if len(text) < 4 || text[len(text)-1] < '2' || text[len(text)-1] > '4' {
		return false
	}
	switch text[:len(text)-1] {
	case "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "bfloat", "float":
		return true
	}
	return false
}

// unqualified places pointers and references without an address space in thread memory, as Metal does. This applies
// to function parameters and local variables.
func (w *rewriter) unqualified() {
	_, pointers := w.typeNames()
	bodies := msl.FunctionBodies(w.Structure, w.items)
	for _, it := range w.items {
		if it.Kind != msl.FunctionItem || it.Scope != msl.NamespaceScope || !w.At(it.Params).Is("(") {
			continue
		}
		for _, part := range w.Split(it.Params+1, w.Match[it.Params]) {
			if w.unqualifiedPointer(part[0], part[1], pointers) &&
				!(w.anyReference && w.constReference(part[0], part[1])) {
				w.insert(w.Tokens[part[0]].Offset, "__private ")
			}
		}
	}
	for i, t := range w.Tokens {
		if !t.Is(";") && !t.Is("{") && !t.Is("}") || !bodies.Contains(t.Offset+1) || i+1 >= len(w.Tokens) {
			continue
		}
		first, end := w.TypeName(i + 1)
		if end == first || msl.ExpressionWords[w.Tokens[first].Text] || w.Tokens[first].Is("using") ||
			w.Tokens[first].Is("typedef") {
			continue
		}
		if (w.At(end).Is("*") || w.At(end).Is("&")) && w.At(end+1).Kind == msl.Identifier &&
			(w.At(end+2).Is("=") || w.At(end+2).Is(";") || w.At(end+2).Is(",")) &&
			w.unqualifiedPointer(first, end+1, pointers) {
			w.insert(w.Tokens[first].Offset, "__private ")
		}
	}
}

// members places the objects of member functions without an address space in thread memory, as Metal does.
func (w *rewriter) members() {
	for _, it := range w.items {
		if it.Scope != msl.ClassScope || it.Params <= it.Start+1 || it.Kind != msl.FunctionItem &&
			it.Kind != msl.OtherItem {
			continue // only a name precedes the parentheses of static_assert and of macros
		}
		end := w.Match[it.Params]
		bound := w.code.Classes[w.At(it.Params-1).Text] || w.At(it.Params-2).Is("~") // a constructor or destructor
		for i := it.Start; i < it.Params; i++ {
			bound = bound || w.Tokens[i].Is("static") || w.Tokens[i].Is("friend") || w.Tokens[i].Is("using")
		}
		for i := end + 1; i <= it.Last && !w.Tokens[i].Is("{") && !w.Tokens[i].Is(";"); i++ {
			bound = bound || msl.IsAddressSpace(w.Tokens[i].Text) || w.code.Aliases[w.Tokens[i].Text] != ""
		}
		if !bound {
			w.insert(w.Tokens[end].End(), " __private")
		}
	}
}

// constReference reports whether the tokens [first, end) declare a reference to const.
func (w *rewriter) constReference(first, end int) bool {
	constant := false
	for i := first; i < end; i++ {
		switch t := w.Tokens[i]; {
		case t.Is("<"):
			if j := w.SkipAngles(i, end); j > i {
				i = j - 1
			}
		case t.Is("const"):
			constant = true
		case t.Is("&"):
			return constant
		case t.Is("*"), t.Is("("), t.Is("="):
			return false
		}
	}
	return false
}

// unqualifiedPointer reports whether the tokens [first, end) declare a pointer or reference without an address space.
func (w *rewriter) unqualifiedPointer(first, end int, pointers map[string]bool) bool {
	pointer := false
	for i := first; i < end; i++ {
		switch t := w.Tokens[i]; {
		case t.Is("<"):
			if j := w.SkipAngles(i, end); j > i {
				i = j - 1
			}
		case t.Is("*") || t.Is("&"):
			pointer = true
		case t.Is("="):
			return pointer
		case msl.IsAddressSpace(t.Text) || t.Is("auto") || pointers[t.Text]:
			return false
		case w.code.Aliases[t.Text] != "":
			return false
		}
	}
	return pointer
}
