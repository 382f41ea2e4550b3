package msl

import "slices"

// Qualifier is an address-space word that is used as a qualifier.
type Qualifier struct {
	Token int          // index in Code.Tokens
	Space AddressSpace // may be Thread
	// NeedsConst is set if constant memory alone makes the qualified object read-only: the declaration has no const,
	// and no constexpr that has the same effect.
	NeedsConst bool
	// Pointer is set if the word qualifies the pointee of a pointer or reference.
	Pointer bool
	// Constructor is set if the word follows the parameters of a constructor. C++ allows no qualifier there.
	Constructor bool
}

// Thread is the address space of a thread's own variables. No kernel argument has it.
const Thread AddressSpace = "thread"

// Code is a text's tokens without comments, but with directives. A token's neighbors lie within the same directive,
// or outside of all directives.
type Code struct {
	Tokens  []Token
	Aliases map[string]AddressSpace // macros that expand to one address space
	Classes map[string]bool         // names of the text's classes
}

// NewCode returns the tokens without comments, and finds the aliases and classes.
func NewCode(all []Token) *Code {
	c := &Code{Aliases: map[string]AddressSpace{}, Classes: map[string]bool{}}
	for _, t := range all {
		if t.Kind != Comment {
			c.Tokens = append(c.Tokens, t)
		}
	}
	for i, t := range c.Tokens {
		if next := c.Neighbor(i, 1); (t.Is("struct") || t.Is("class")) && next.Kind == Identifier {
			c.Classes[next.Text] = true
		}
		// # define NAME space
		if t.Is("#") && c.Neighbor(i, -1).Kind == 0 && c.Neighbor(i, 1).Is("define") &&
			IsAddressSpace(c.Neighbor(i, 3).Text) && c.Neighbor(i, 4).Kind == 0 {
			c.Aliases[c.Neighbor(i, 2).Text] = AddressSpace(c.Neighbor(i, 3).Text)
		}
	}
	return c
}

// IsAddressSpace reports whether a word names an address space.
func IsAddressSpace(text string) bool {
	return text == "device" || text == "constant" || text == "threadgroup" || text == "thread"
}

// Neighbor returns the token at a distance from token i. It is empty at the end of the text or directive.
func (c *Code) Neighbor(i, distance int) Token {
	if j := c.Step(i, distance); j >= 0 {
		return c.Tokens[j]
	}
	return Token{}
}

// Step returns the index of the token at a distance from token i, or -1.
func (c *Code) Step(i, distance int) int {
	direction, directive := 1, c.Tokens[i].Directive
	if distance < 0 {
		direction, distance = -1, -distance
	}
	for distance > 0 {
		i += direction
		if i < 0 || i >= len(c.Tokens) {
			return -1
		}
		if c.Tokens[i].Directive == directive {
			distance--
		} else if directive != 0 {
			return -1
		}
	}
	return i
}

// Qualifiers returns every address-space word that is a qualifier rather than a name.
func (c *Code) Qualifiers() []Qualifier {
	var found []Qualifier
	for i, t := range c.Tokens {
		if t.Kind != Identifier {
			continue
		}
		space, is := c.Aliases[t.Text]
		if IsAddressSpace(t.Text) {
			space, is = AddressSpace(t.Text), true
		}
		if is && c.qualifies(i) {
			words, pointer := c.specifiers(i)
			isConst := slices.Contains(words, "const") || !pointer && slices.Contains(words, "constexpr")
			constructor := c.ofConstructor(i)
			found = append(found, Qualifier{i, space, space == Constant &&
				!isConst && !constructor, pointer, constructor})
		}
	}
	return found
}

// qualifies reports whether the address-space word at token i is a qualifier.
func (c *Code) qualifies(i int) bool {
	previous, next := c.Neighbor(i, -1), c.Neighbor(i, 1)
	typed := previous.Kind == Identifier && !ExpressionWords[previous.Text] || previous.Is(">")
	switch {
	case previous.Is(".") || previous.Is("->") || previous.Is("::"):
		return false
	case previous.Is("define") && c.Neighbor(i, -2).Is("#"):
		return false
	case next.Kind == Identifier || next.Is("::"):
		return true
	case next.Kind == 0:
		return c.Tokens[i].Directive != 0
	case next.Is("*") || next.Is("&") || next.Is("&&"):
		return typed
	case next.Is("("):
		follow := c.Neighbor(i, 2)
		return typed && (follow.Is("*") || follow.Is("&"))
	case next.Is("{") || next.Is(";") || next.Is("->") || next.Is("=") || next.Is(":"): // f() const device { … }
		if previous.Is("const") || previous.Is("volatile") {
			return c.Neighbor(i, -2).Is(")")
		}
		return previous.Is(")")
	}
	return false
}

// ExpressionWords holds the keywords that are followed by an expression.
var ExpressionWords = map[string]bool{
	"return": true, "case": true, "else": true, "do": true, "sizeof": true, "goto": true,
}

// ofConstructor reports whether token i follows the parameters of a constructor.
func (c *Code) ofConstructor(i int) bool {
	j := c.Step(i, -1)
	if j < 0 || !c.Tokens[j].Is(")") {
		return false
	}
	depth := 0
	for steps := 0; j >= 0 && steps < maxAngles; steps++ {
		if c.Tokens[j].Is(")") {
			depth++
		} else if c.Tokens[j].Is("(") {
			depth--
		}
		if depth == 0 {
			return c.Classes[c.Neighbor(j, -1).Text]
		}
		j = c.Step(j, -1)
	}
	return false
}

// maxSpecifiers is the number of words that are read on each side of a qualifier.
const maxSpecifiers = 64

// specifiers returns the words of the declaration around token i, and whether a pointer or reference follows them.
func (c *Code) specifiers(i int) (words []string, pointer bool) {
	steps := 0
	for j := c.Step(i, 1); j >= 0 && steps < maxSpecifiers; j = c.Step(j, 1) {
		steps++
		t := c.Tokens[j]
		if t.Is("<") {
			if j = c.MatchingAngle(j, 1); j < 0 {
				break
			}
			continue
		}
		if t.Kind != Identifier && !t.Is("::") {
			next := c.Neighbor(j, 1)
			pointer = t.Is("*") || t.Is("&") || t.Is("&&") || t.Is("(") && (next.Is("*") || next.Is("&"))
			break
		}
		words = append(words, t.Text)
	}
	if before := c.Neighbor(i, -1); before.Is("*") || before.Is("&") { // T* constant p: the pointer itself
		pointer = false
	}
	for j := c.Step(i, -1); j >= 0 && steps < 2*maxSpecifiers; j = c.Step(j, -1) {
		steps++
		t := c.Tokens[j]
		if t.Is(">") {
			if j = c.MatchingAngle(j, -1); j < 0 || c.Neighbor(j, -1).Is("template") {
				break
			}
			continue
		}
		if t.Kind != Identifier && !t.Is("::") {
			break
		}
		words = append(words, t.Text)
	}
	return words, pointer
}

// ConstReference reports whether token i qualifies the referent of a reference to const.
func (c *Code) ConstReference(i int) bool {
	words, pointer := c.specifiers(i)
	j := c.Step(i, 1)
	for j >= 0 && (c.Tokens[j].Kind == Identifier || c.Tokens[j].Is("::") || c.Tokens[j].Is("<")) {
		if c.Tokens[j].Is("<") {
			if j = c.MatchingAngle(j, 1); j < 0 {
				return false
			}
		}
		j = c.Step(j, 1)
	}
	return pointer && j >= 0 && c.Tokens[j].Is("&") && slices.Contains(words, "const")
}

// MatchingAngle returns the index of the angle bracket that matches the one at j, searching in a direction of 1 or
// -1. It returns -1 if there is none.
func (c *Code) MatchingAngle(j, direction int) int {
	depth := 0
	for steps := 0; j >= 0 && steps < maxAngles; steps++ {
		switch t := c.Tokens[j]; {
		case t.Is("<"):
			depth++
		case t.Is(">"):
			depth--
		case t.Is(";"):
			return -1
		}
		if depth == 0 {
			return j
		}
		j = c.Step(j, direction)
	}
	return -1
}
