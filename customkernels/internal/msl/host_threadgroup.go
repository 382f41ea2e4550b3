package msl

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// threadgroupVariables turns the declarations of threadgroup variables into references to
// the executor's arena:
//
//	threadgroup float a[32], b;
//
// becomes
//
//	typedef float mlxg_tg_type_0 [32]; mlxg_tg_type_0& a = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>(); …
//
// Pointers and references into threadgroup memory are no such variables.
func (h *hostWriter) threadgroupVariables() error {
	variables, err := h.findThreadgroupVariables(h.code, h.items)
	if err != nil {
		return err
	}
	for id, v := range variables {
		kind := fmt.Sprintf("%stg_type_%d", prefix, id)
		separator, space := "", ""
		if !v.first {
			// In the place of the comma; what is declared stays on its line.
			separator = "; " + strings.Repeat("\n", strings.Count(h.text[v.start:v.nameAt], "\n"))
		}
		if v.dimensions != "" {
			space = " "
		}
		h.edits.replace(v.start, v.end, fmt.Sprintf("%stypedef %s %s%s%s; %s& %s = mlxg::threadgroup_variable<%s, %d>()",
			separator, v.element, kind, space, v.dimensions, kind, v.name, kind, id))
		h.words[v.qualifier] = "threadgroup"
	}
	return nil
}

// threadgroupVariable is one declarator of a threadgroup variable.
type threadgroupVariable struct {
	span              // what is replaced: specifiers or comma, and declarator
	qualifier  int    // offset of the word threadgroup
	element    string // the element type
	name       string
	nameAt     int    // offset of the name
	dimensions string // "[4][8]"
	first      bool   // the first declarator of its declaration
}

// findThreadgroupVariables lists the threadgroup variables of the text.
func (s *structure) findThreadgroupVariables(c *code, items []item) ([]threadgroupVariable, error) {
	var found []threadgroupVariable
	significant := map[int]int{} // offset to index
	for i, t := range s.tokens {
		significant[t.Offset] = i
	}
	bodies := functionBodies(s, slices.DeleteFunc(slices.Clone(items), func(it item) bool { return !it.kernel }))
	for _, q := range c.qualifiers() {
		if q.space != Threadgroup {
			continue
		}
		t := c.tokens[q.token]
		if t.Directive != 0 {
			if next := c.neighbour(q.token, 1); next.Kind == Identifier && !c.pointerFollows(q.token) {
				return nil, errorf(s.position(t), "a threadgroup variable cannot be declared in a macro; write the declaration out")
			}
			continue
		}
		i, ok := significant[t.Offset]
		if !ok {
			continue // not kept by the preprocessor
		}
		variables, err := s.threadgroupDeclaration(i)
		if err != nil {
			return nil, err
		}
		if len(variables) > 0 && !bodies.contains(t.Offset) {
			return nil, s.errorAt(i, "a threadgroup variable can only be declared in a kernel; move %s into the kernel and pass a pointer to it", variables[0].name)
		}
		found = append(found, variables...)
	}
	return found, nil
}

// pointerFollows reports whether the specifiers behind token i end in a pointer or reference.
func (c *code) pointerFollows(i int) bool {
	steps := 0
	for j := c.step(i, 1); j >= 0 && steps < maxSpecifiers; j = c.step(j, 1) {
		steps++
		t := c.tokens[j]
		if t.is("*") || t.is("&") {
			return true
		}
		if t.Kind != Identifier && !t.is("::") && !t.is("<") && !t.is(">") && !t.is(",") && t.Kind != Number && !t.is("##") {
			return false
		}
	}
	return false
}

// spans is a sorted list of pieces of a text that do not overlap.
type spans []span

// functionBodies lists the bodies of the functions.
func functionBodies(s *structure, items []item) spans {
	var bodies spans
	for _, it := range items {
		if it.kind == functionItem {
			bodies = append(bodies, span{s.tokens[it.open].Offset, s.tokens[it.last].Offset})
		}
	}
	sort.Slice(bodies, func(i, j int) bool { return bodies[i].start < bodies[j].start })
	return bodies
}

// contains reports whether an offset lies in one of the pieces.
func (b spans) contains(offset int) bool {
	i := sort.Search(len(b), func(i int) bool { return b[i].end > offset })
	return i < len(b) && b[i].start < offset
}

// threadgroupDeclaration reads the declaration whose word threadgroup is token i, and returns
// its variables: none if it declares pointers or is no declaration.
func (s *structure) threadgroupDeclaration(i int) ([]threadgroupVariable, error) {
	start := i
	for start > 0 {
		previous := s.tokens[start-1]
		if previous.is(")") && s.at(s.match[start-1]-1).is("alignas") {
			start = s.match[start-1] - 1
			continue
		}
		if previous.is("]") && s.isAttribute(s.match[start-1]) {
			start = s.match[start-1]
			continue
		}
		if !previous.is("static") && !previous.is("volatile") && !previous.is("const") {
			break
		}
		start--
	}
	if start > 0 {
		previous := s.tokens[start-1]
		if previous.Kind == Identifier || previous.is(">") { // float threadgroup x[4]
			next := s.at(i + 2)
			if s.at(i+1).Kind == Identifier && (next.is("[") && !s.isAttribute(i+2) || next.is(";")) {
				return nil, s.errorAt(i, "write threadgroup before the type of %s", s.at(i+1).Text)
			}
			return nil, nil
		}
		if !previous.is(";") && !previous.is("{") && !previous.is("}") && !previous.is(":") && !previous.is(")") {
			return nil, nil
		}
	}
	first, end := s.typeName(i + 1)
	if end == first || s.at(end).Kind != Identifier && !s.at(end).is("*") && !s.at(end).is("&") && !s.at(end).is("(") {
		return nil, nil
	}
	element := s.join2(first, end-1)
	var found []threadgroupVariable
	begin, pointers := start, false
	for j := end; ; j++ {
		name := s.at(j)
		if name.Kind != Identifier {
			for ; j < len(s.tokens) && !s.tokens[j].is(",") && !s.tokens[j].is(";"); j++ { // a pointer's declarator
				if s.match[j] > j {
					j = s.match[j]
				} else if s.match[j] >= 0 {
					return nil, nil
				}
			}
			if len(found) > 0 && j < len(s.tokens) {
				return nil, s.errorAt(j, "declare threadgroup variables and pointers in separate statements")
			}
			if !s.at(j).is(",") {
				return nil, nil
			}
			pointers = true
			continue
		}
		if pointers {
			return nil, s.errorAt(j, "declare threadgroup variables and pointers in separate statements")
		}
		last := j
		dimensions := ""
		for j++; s.at(j).is("["); j++ {
			if !s.isAttribute(j) {
				dimensions += s.source(j, s.match[j])
				last = s.match[j]
			}
			j = s.match[j]
		}
		switch next := s.at(j); {
		case next.is("=") || next.is("{") || next.is("("):
			if next.is("(") && start == 0 || next.is("(") && s.at(s.match[j]+1).is("{") {
				return nil, nil // a function
			}
			return nil, s.errorAt(j, "the threadgroup variable %s cannot have an initializer; assign it in one thread, then use a barrier", name.Text)
		case !next.is(",") && !next.is(";"):
			return nil, nil
		}
		found = append(found, threadgroupVariable{
			span: span{s.tokens[begin].Offset, s.tokens[last].End()}, qualifier: s.tokens[i].Offset,
			element: element, name: name.Text, nameAt: name.Offset, dimensions: strings.ReplaceAll(dimensions, "\n", " "), first: len(found) == 0,
		})
		if s.at(j).is(";") {
			return found, nil
		}
		begin = j
	}
}

// join2 is the tokens from first to last with a space between any two.
func (s *structure) join2(first, last int) string {
	var words []string
	for i := first; i <= last; i++ {
		words = append(words, s.tokens[i].Text)
	}
	return strings.Join(words, " ")
}

// typeName returns the range of a type's tokens that begins at i.
func (s *structure) typeName(i int) (first, end int) {
	first = i
	named := false
	for i < len(s.tokens) {
		t := s.tokens[i]
		switch {
		case (t.is("struct") || t.is("class") || t.is("union")) && !named && s.definition(i) > 0:
			i, named = s.match[s.definition(i)], true
		case t.is("const") || t.is("volatile") || t.is("typename") || t.is("struct") || t.is("class") || t.is("union"):
		case t.is("__attribute__") && s.at(i+1).is("("):
			i = s.match[i+1]
		case builtinWord[t.Text]:
			named = true
		case t.is("decltype") && s.at(i+1).is("("):
			i, named = s.match[i+1], true
		case (t.is("::") || t.Kind == Identifier) && !named:
			for i < len(s.tokens) {
				if s.tokens[i].is("::") {
					i++
				}
				if s.at(i).is("template") {
					i++
				}
				if s.at(i).Kind != Identifier {
					return first, i
				}
				i++
				if s.at(i).is("<") {
					i = s.skipAngles(i, len(s.tokens))
				}
				if !s.at(i).is("::") {
					break
				}
			}
			named = true
			continue
		default:
			return first, i
		}
		i++
	}
	return first, i
}

// definition is the index of the brace of the class that is defined at token i, or 0.
func (s *structure) definition(i int) int {
	if i++; s.at(i).Kind == Identifier {
		i++
	}
	if s.at(i).is("{") {
		return i
	}
	return 0
}

// builtinWord holds the words that can be combined to a type.
var builtinWord = map[string]bool{
	"unsigned": true, "signed": true, "int": true, "short": true, "long": true, "char": true,
}
