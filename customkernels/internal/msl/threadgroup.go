package msl

import (
	"slices"
	"strings"
)

// ThreadgroupVariable is one declarator of a threadgroup variable.
type ThreadgroupVariable struct {
	span              // the declarator, and the specifiers or the comma before it
	Qualifier  int    // offset of the word threadgroup
	Element    string // element type
	Name       string
	NameAt     int    // offset of the name
	Dimensions string // "[4][8]"
	First      bool   // first declarator of its declaration
	Zero       bool   // initialized with zeros: "= {0}", "= {}"
}

// ThreadgroupVariables returns the threadgroup variables of the text. Pointers and references to threadgroup memory
// are not among them. A variable in a macro, outside of a kernel, or with an initializer is an error.
func (s *Structure) ThreadgroupVariables(c *Code, items []Item) ([]ThreadgroupVariable, error) {
	var found []ThreadgroupVariable
	significant := map[int]int{} // offset to index
	for i, t := range s.Tokens {
		significant[t.Offset] = i
	}
	bodies := FunctionBodies(s, slices.DeleteFunc(slices.Clone(items), func(it Item) bool { return !it.Kernel }))
	for _, q := range c.Qualifiers() {
		if q.Space != Threadgroup {
			continue
		}
		t := c.Tokens[q.Token]
		if t.Directive != 0 {
			if next := c.Neighbor(q.Token, 1); next.Kind == Identifier && !c.pointerFollows(q.Token) {
				return nil, Errorf(s.Position(t), "a threadgroup variable cannot be declared in a macro; write the "+
					"declaration out")
			}
			continue
		}
		i, ok := significant[t.Offset]
		if !ok {
			continue // excluded by the preprocessor
		}
		variables, err := s.threadgroupDeclaration(i)
		if err != nil {
			return nil, err
		}
		if len(variables) > 0 && !bodies.Contains(t.Offset) {
			return nil, s.ErrorAt(i, "a threadgroup variable can only be declared in a kernel; move %s into the "+
				"kernel and pass a pointer to it", variables[0].Name)
		}
		found = append(found, variables...)
	}
	return found, nil
}

// pointerFollows reports whether the specifiers after token i end in a pointer or reference.
func (c *Code) pointerFollows(i int) bool {
	steps := 0
	for j := c.Step(i, 1); j >= 0 && steps < maxSpecifiers; j = c.Step(j, 1) {
		steps++
		t := c.Tokens[j]
		if t.Is("*") || t.Is("&") {
			return true
		}
		if t.Kind != Identifier && !t.Is("::") && !t.Is("<") && !t.Is(">") && !t.Is(",") && t.Kind != Number &&
			!t.Is("##") {
			return false
		}
	}
	return false
}

// threadgroupDeclaration returns the variables of the declaration whose word threadgroup is token i. It returns nil
// if the declaration has only pointers or if the token begins no declaration.
func (s *Structure) threadgroupDeclaration(i int) ([]ThreadgroupVariable, error) {
	start := i
	for start > 0 {
		previous := s.Tokens[start-1]
		if previous.Is(")") && s.At(s.Match[start-1]-1).Is("alignas") {
			start = s.Match[start-1] - 1
			continue
		}
		if previous.Is("]") && s.IsAttribute(s.Match[start-1]) {
			start = s.Match[start-1]
			continue
		}
		if !previous.Is("static") && !previous.Is("volatile") && !previous.Is("const") {
			break
		}
		start--
	}
	if start > 0 {
		previous := s.Tokens[start-1]
		if previous.Kind == Identifier || previous.Is(">") { // float threadgroup x[4]
			next := s.At(i + 2)
			if s.At(i+1).Kind == Identifier && (next.Is("[") && !s.IsAttribute(i+2) || next.Is(";")) {
				return nil, s.ErrorAt(i, "write threadgroup before the type of %s", s.At(i+1).Text)
			}
			return nil, nil
		}
		if !previous.Is(";") && !previous.Is("{") && !previous.Is("}") && !previous.Is(":") && !previous.Is(")") {
			return nil, nil
		}
	}
	first, end := s.TypeName(i + 1)
	if end == first || s.At(end).Kind != Identifier && !s.At(end).Is("*") && !s.At(end).Is("&") && !s.At(end).Is("(") {
		return nil, nil
	}
	element := s.JoinSpaced(first, end-1)
	var found []ThreadgroupVariable
	begin, pointers := start, false
	for j := end; ; j++ {
		name := s.At(j)
		if name.Kind != Identifier {
			for ; j < len(s.Tokens) && !s.Tokens[j].Is(",") && !s.Tokens[j].Is(";"); j++ { // a pointer's declarator
				if s.Match[j] > j {
					j = s.Match[j]
				} else if s.Match[j] >= 0 {
					return nil, nil
				}
			}
			if len(found) > 0 && j < len(s.Tokens) {
				return nil, s.ErrorAt(j, "declare threadgroup variables and pointers in separate statements")
			}
			if !s.At(j).Is(",") {
				return nil, nil
			}
			pointers = true
			continue
		}
		if pointers {
			return nil, s.ErrorAt(j, "declare threadgroup variables and pointers in separate statements")
		}
		last := j
		dimensions := ""
		for j++; s.At(j).Is("["); j++ {
			if !s.IsAttribute(j) {
				dimensions += s.source(j, s.Match[j])
				last = s.Match[j]
			}
			j = s.Match[j]
		}
		zero := false
		if end := s.zeros(j); end > j {
			zero, last, j = true, end-1, end
		}
		switch next := s.At(j); {
		case next.Is("=") || next.Is("{") || next.Is("("):
			if next.Is("(") && start == 0 || next.Is("(") && s.At(s.Match[j]+1).Is("{") {
				return nil, nil // a function
			}
			return nil, s.ErrorAt(j, "the threadgroup variable %s cannot have an initializer other than "+
				"zeros; assign it in one thread, then use a barrier", name.Text)
		case !next.Is(",") && !next.Is(";"):
			return nil, nil
		}
		found = append(found, ThreadgroupVariable{
			span: span{s.Tokens[begin].Offset, s.Tokens[last].End()}, Qualifier: s.Tokens[i].Offset,
			Element: element, Name: name.Text, NameAt: name.Offset,
			Dimensions: strings.ReplaceAll(dimensions, "\n", " "), First: len(found) == 0, Zero: zero,
		})
		if s.At(j).Is(";") {
			return found, nil
		}
		begin = j
	}
}

// zeros returns the index of the token after an initializer of zeros that begins at token i, or i.
func (s *Structure) zeros(i int) int {
	j := i
	if s.At(j).Is("=") {
		j++
	}
	if s.At(j).Is("{") {
		for k := j + 1; k < s.Match[j]; k++ {
			if t := s.Tokens[k]; !t.Is("{") && !t.Is("}") && !t.Is(",") && !zeroLiteral(t) {
				return i
			}
		}
		return s.Match[j] + 1
	}
	if j > i && zeroLiteral(s.At(j)) {
		return j + 1
	}
	return i
}

func zeroLiteral(t Token) bool {
	return t.Kind == Number && strings.Trim(strings.TrimRight(t.Text, "uUlLfFhH"), "0.") == "" || t.Is("false")
}
