package msl

import "slices"

// qualifier is an address-space word in its use as a qualifier.
type Qualifier struct {
	Token int          // its index in the code
	Space AddressSpace // "thread" too
	// constness tells that constant memory is all that makes what it qualifies read-only: no const
	// stands beside it, and no constexpr that would do as well.
	NeedsConst bool
	// pointer tells that it qualifies what a pointer or reference leads to.
	Pointer bool
	// constructor tells that it follows the arguments of a class's constructor, which C++ does not qualify.
	Constructor bool
}

const Thread AddressSpace = "thread"

// code is a text's tokens without comments, preprocessor lines included. Neighbours are
// neighbours only within the same line of the preprocessor, or outside of all.
type Code struct {
	Tokens  []Token
	Aliases map[string]AddressSpace // macros that stand for one address space
	Classes map[string]bool         // the names of the text's classes
}

// newCode leaves the comments out and finds the aliases.
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

func IsAddressSpace(text string) bool {
	return text == "device" || text == "constant" || text == "threadgroup" || text == "thread"
}

// neighbour is the token at a distance from i, an empty one where the text or the
// preprocessor line ends. Outside of preprocessor lines it looks over them.
func (c *Code) Neighbor(i, distance int) Token {
	if j := c.Step(i, distance); j >= 0 {
		return c.Tokens[j]
	}
	return Token{}
}

// step is the index of the token at a distance from i, or -1.
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

// qualifiers finds every address-space word that is one, not somebody's variable.
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
			found = append(found, Qualifier{i, space, space == Constant && !isConst && !constructor, pointer, constructor})
		}
	}
	return found
}

// qualifies tells an address-space word that qualifies from a name.
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

// expressionWord holds keywords behind which an expression begins.
var ExpressionWords = map[string]bool{
	"return": true, "case": true, "else": true, "do": true, "sizeof": true, "goto": true,
}

// ofConstructor reports whether token i follows the arguments of a constructor.
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

// maxSpecifiers bounds the words of a declaration that are looked at, on each side.
const maxSpecifiers = 64

// specifiers returns the words of the declaration about token i, and whether a pointer or
// reference follows them.
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

// constReference reports whether token i, among the words of a declaration, qualifies what a reference
// to a constant leads to.
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

// overAngles returns the index of the partner of the '<' or '>' at j, looking in a direction, or -1.
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
