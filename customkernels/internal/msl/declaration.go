package msl

import (
	"sort"
	"strings"
)

// Spans is a sorted list of pieces of a text that do not overlap.
type Spans []span

// FunctionBodies returns the bodies of the functions among the items.
func FunctionBodies(s *Structure, items []Item) Spans {
	var bodies Spans
	for _, it := range items {
		if it.Kind == FunctionItem {
			bodies = append(bodies, span{s.Tokens[it.Open].Offset, s.Tokens[it.Last].Offset})
		}
	}
	sort.Slice(bodies, func(i, j int) bool { return bodies[i].Start < bodies[j].Start })
	return bodies
}

// Contains reports whether an offset lies within a piece.
func (b Spans) Contains(offset int) bool {
	i := sort.Search(len(b), func(i int) bool { return b[i].End > offset })
	return i < len(b) && b[i].Start < offset
}

// JoinSpaced returns the tokens from first to last, separated by single spaces.
func (s *Structure) JoinSpaced(first, last int) string {
	var words []string
	for i := first; i <= last; i++ {
		words = append(words, s.Tokens[i].Text)
	}
	return strings.Join(words, " ")
}

// TypeName returns the token range [first, end) of a type that begins at token i. The range is empty if no type
// begins there.
func (s *Structure) TypeName(i int) (first, end int) {
	first = i
	named := false
	for i < len(s.Tokens) {
		t := s.Tokens[i]
		switch {
		case (t.Is("struct") || t.Is("class") || t.Is("union")) && !named && s.definition(i) > 0:
			i, named = s.Match[s.definition(i)], true
		case t.Is("const") || t.Is("volatile") || t.Is("typename") || t.Is("struct") || t.Is("class") || t.Is("union"):
		case t.Is("__attribute__") && s.At(i+1).Is("("):
			i = s.Match[i+1]
		case builtinWord[t.Text]:
			named = true
		case t.Is("decltype") && s.At(i+1).Is("("):
			i, named = s.Match[i+1], true
		case (t.Is("::") || t.Kind == Identifier) && !named:
			for i < len(s.Tokens) {
				if s.Tokens[i].Is("::") {
					i++
				}
				if s.At(i).Is("template") {
					i++
				}
				if s.At(i).Kind != Identifier {
					return first, i
				}
				i++
				if s.At(i).Is("<") {
					i = s.SkipAngles(i, len(s.Tokens))
				}
				if !s.At(i).Is("::") {
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

// definition returns the index of the opening brace of the class that is defined at token i, or 0.
func (s *Structure) definition(i int) int {
	if i++; s.At(i).Kind == Identifier {
		i++
	}
	if s.At(i).Is("{") {
		return i
	}
	return 0
}

// builtinWord holds the keywords that combine to the name of a built-in type.
var builtinWord = map[string]bool{
	"unsigned": true, "signed": true, "int": true, "short": true, "long": true, "char": true,
}
