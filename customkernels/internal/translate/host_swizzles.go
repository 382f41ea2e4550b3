package translate

import (
	"regexp"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

var swizzleName = regexp.MustCompile(`^([xyzw]{2,4}|[rgba]{2,4})$`)

// swizzles appends () to swizzles that are read: v.xy becomes v.xy(), a vector. A plain v.xy is of a class of its own,
// which auto and template parameters would deduce.
func (h *rewriter) swizzles() {
	other := map[string]bool{} // names that the text declares itself
	for i, t := range h.code.Tokens {
		if swizzleName.MatchString(t.Text) && !isMember(h.code.Neighbor(i, -1)) {
			other[t.Text] = true
		}
	}
	for i, t := range h.Tokens {
		if swizzleName.MatchString(t.Text) && isMember(h.At(i-1)) && !other[t.Text] && !h.assigned(i) && h.deduced(i) {
			h.edits.Insert(t.End(), "()")
		}
	}
}

// isMember reports whether a member's name follows the token.
func isMember(t msl.Token) bool { return t.Is(".") || t.Is("->") }

var assignments = []string{"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"}

// assigned reports whether a value is assigned to the member at token i or to a part of it.
func (h *rewriter) assigned(i int) bool {
	for i++; ; {
		switch t := h.At(i); {
		case isMember(t):
			i += 2
		case t.Is("["):
			i = h.Match[i] + 1
		default:
			return slices.Contains(assignments, t.Text)
		}
	}
}

// deduced reports whether C++ may deduce a type from the value that ends at token i: an argument of a call, a value of a
// conditional operator, an initial value of an auto variable, or a value whose member follows. The result is false in an
// argument of a macro, which may assign to it.
func (h *rewriter) deduced(i int) bool {
	found := isMember(h.At(i+1)) || h.At(i+1).Is("[")
	for i--; i >= 0; i-- {
		switch t := h.Tokens[i]; {
		case t.Is(")") || t.Is("]"):
			i = h.Match[i]
		case t.Is("(") && h.IsMacro(h.At(i-1).Text):
			return false
		case t.Is("(") || t.Is("?") || t.Is("auto") || t.Is("return"):
			found = true
		case t.Is("{") || t.Is("}") || t.Is(";"):
			return found
		}
	}
	return found
}
