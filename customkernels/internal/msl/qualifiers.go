package msl

import "slices"

// qualifier is an address-space word in its use as a qualifier.
type qualifier struct {
	token int          // its index in the code
	space AddressSpace // "thread" too
	// constness tells that constant memory is all that makes what it qualifies read-only: no const
	// stands beside it, and no constexpr that would do as well.
	constness bool
	// pointer tells that it qualifies what a pointer or reference leads to.
	pointer bool
	// constructor tells that it follows the arguments of a class's constructor, which C++ does not qualify.
	constructor bool
}

const thread AddressSpace = "thread"

// code is a text's tokens without comments, preprocessor lines included. Neighbours are
// neighbours only within the same line of the preprocessor, or outside of all.
type code struct {
	tokens  []Token
	aliases map[string]AddressSpace // macros that stand for one address space
	classes map[string]bool         // the names of the text's classes
}

// newCode leaves the comments out and finds the aliases.
func newCode(all []Token) *code {
	c := &code{aliases: map[string]AddressSpace{}, classes: map[string]bool{}}
	for _, t := range all {
		if t.Kind != Comment {
			c.tokens = append(c.tokens, t)
		}
	}
	for i, t := range c.tokens {
		if next := c.neighbour(i, 1); (t.is("struct") || t.is("class")) && next.Kind == Identifier {
			c.classes[next.Text] = true
		}
		// # define NAME space
		if t.is("#") && c.neighbour(i, -1).Kind == 0 && c.neighbour(i, 1).is("define") &&
			isSpace(c.neighbour(i, 3).Text) && c.neighbour(i, 4).Kind == 0 {
			c.aliases[c.neighbour(i, 2).Text] = AddressSpace(c.neighbour(i, 3).Text)
		}
	}
	return c
}

func isSpace(text string) bool {
	return text == "device" || text == "constant" || text == "threadgroup" || text == "thread"
}

// neighbour is the token at a distance from i, an empty one where the text or the
// preprocessor line ends. Outside of preprocessor lines it looks over them.
func (c *code) neighbour(i, distance int) Token {
	if j := c.step(i, distance); j >= 0 {
		return c.tokens[j]
	}
	return Token{}
}

// step is the index of the token at a distance from i, or -1.
func (c *code) step(i, distance int) int {
	direction, directive := 1, c.tokens[i].Directive
	if distance < 0 {
		direction, distance = -1, -distance
	}
	for distance > 0 {
		i += direction
		if i < 0 || i >= len(c.tokens) {
			return -1
		}
		if c.tokens[i].Directive == directive {
			distance--
		} else if directive != 0 {
			return -1
		}
	}
	return i
}

// qualifiers finds every address-space word that is one, not somebody's variable.
func (c *code) qualifiers() []qualifier {
	var found []qualifier
	for i, t := range c.tokens {
		if t.Kind != Identifier {
			continue
		}
		space, is := c.aliases[t.Text]
		if isSpace(t.Text) {
			space, is = AddressSpace(t.Text), true
		}
		if is && c.qualifies(i) {
			words, pointer := c.specifiers(i)
			isConst := slices.Contains(words, "const") || !pointer && slices.Contains(words, "constexpr")
			constructor := c.ofConstructor(i)
			found = append(found, qualifier{i, space, space == Constant && !isConst && !constructor, pointer, constructor})
		}
	}
	return found
}

// qualifies tells an address-space word that qualifies from a name.
func (c *code) qualifies(i int) bool {
	previous, next := c.neighbour(i, -1), c.neighbour(i, 1)
	typed := previous.Kind == Identifier && !expressionWord[previous.Text] || previous.is(">")
	switch {
	case previous.is(".") || previous.is("->") || previous.is("::"):
		return false
	case previous.is("define") && c.neighbour(i, -2).is("#"):
		return false
	case next.Kind == Identifier || next.is("::"):
		return true
	case next.Kind == 0:
		return c.tokens[i].Directive != 0
	case next.is("*") || next.is("&") || next.is("&&"):
		return typed
	case next.is("("):
		follow := c.neighbour(i, 2)
		return typed && (follow.is("*") || follow.is("&"))
	case next.is("{") || next.is(";") || next.is("->") || next.is("=") || next.is(":"): // f() const device { … }
		if previous.is("const") || previous.is("volatile") {
			return c.neighbour(i, -2).is(")")
		}
		return previous.is(")")
	}
	return false
}

// expressionWord holds keywords behind which an expression begins.
var expressionWord = map[string]bool{
	"return": true, "case": true, "else": true, "do": true, "sizeof": true, "goto": true,
}

// ofConstructor reports whether token i follows the arguments of a constructor.
func (c *code) ofConstructor(i int) bool {
	j := c.step(i, -1)
	if j < 0 || !c.tokens[j].is(")") {
		return false
	}
	depth := 0
	for steps := 0; j >= 0 && steps < maxAngles; steps++ {
		if c.tokens[j].is(")") {
			depth++
		} else if c.tokens[j].is("(") {
			depth--
		}
		if depth == 0 {
			return c.classes[c.neighbour(j, -1).Text]
		}
		j = c.step(j, -1)
	}
	return false
}

// maxSpecifiers bounds the words of a declaration that are looked at, on each side.
const maxSpecifiers = 64

// specifiers returns the words of the declaration about token i, and whether a pointer or
// reference follows them.
func (c *code) specifiers(i int) (words []string, pointer bool) {
	steps := 0
	for j := c.step(i, 1); j >= 0 && steps < maxSpecifiers; j = c.step(j, 1) {
		steps++
		t := c.tokens[j]
		if t.is("<") {
			if j = c.overAngles(j, 1); j < 0 {
				break
			}
			continue
		}
		if t.Kind != Identifier && !t.is("::") {
			next := c.neighbour(j, 1)
			pointer = t.is("*") || t.is("&") || t.is("&&") || t.is("(") && (next.is("*") || next.is("&"))
			break
		}
		words = append(words, t.Text)
	}
	if before := c.neighbour(i, -1); before.is("*") || before.is("&") { // T* constant p: the pointer itself
		pointer = false
	}
	for j := c.step(i, -1); j >= 0 && steps < 2*maxSpecifiers; j = c.step(j, -1) {
		steps++
		t := c.tokens[j]
		if t.is(">") {
			if j = c.overAngles(j, -1); j < 0 || c.neighbour(j, -1).is("template") {
				break
			}
			continue
		}
		if t.Kind != Identifier && !t.is("::") {
			break
		}
		words = append(words, t.Text)
	}
	return words, pointer
}

// constReference reports whether token i, among the words of a declaration, qualifies what a reference
// to a constant leads to.
func (c *code) constReference(i int) bool {
	words, pointer := c.specifiers(i)
	j := c.step(i, 1)
	for j >= 0 && (c.tokens[j].Kind == Identifier || c.tokens[j].is("::") || c.tokens[j].is("<")) {
		if c.tokens[j].is("<") {
			if j = c.overAngles(j, 1); j < 0 {
				return false
			}
		}
		j = c.step(j, 1)
	}
	return pointer && j >= 0 && c.tokens[j].is("&") && slices.Contains(words, "const")
}

// overAngles returns the index of the partner of the '<' or '>' at j, looking in a direction, or -1.
func (c *code) overAngles(j, direction int) int {
	depth := 0
	for steps := 0; j >= 0 && steps < maxAngles; steps++ {
		switch t := c.tokens[j]; {
		case t.is("<"):
			depth++
		case t.is(">"):
			depth--
		case t.is(";"):
			return -1
		}
		if depth == 0 {
			return j
		}
		j = c.step(j, direction)
	}
	return -1
}
