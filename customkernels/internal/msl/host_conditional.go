package msl

import (
	"slices"
	"strings"
)

// conditionals gives the two values of each conditional operator of these lines one type:
//
//	c ? a : b
//
// becomes
//
//	c ? (::mlxg::arm<decltype((a)), decltype((b))>)(a) : (::mlxg::arm<decltype((b)), decltype((a))>)(b)
//
// In Metal half is a number, and so has a type in common with another. Here it is a class, as are
// swizzles, and C++ takes the two for each other both ways or not at all.
func (h *hostWriter) conditionals(lines []int) {
	if len(lines) == 0 {
		return
	}
	for i := range h.tokens {
		colon, end := h.conditional(i, lines)
		if end == 0 {
			continue
		}
		a, b := h.withArms(i+1, colon-1, lines), h.withArms(colon+1, end-1, lines)
		h.enclose(i+1, colon-1, arm(a, b))
		h.enclose(colon+1, end-1, arm(b, a))
	}
}

// arm is the beginning of a cast of the value a, whose alternative is b.
func arm(a, b string) string { return "(::mlxg::arm<decltype((" + a + ")), decltype((" + b + "))>)(" }

// enclose puts words before the tokens from first to last, and a closing parenthesis behind.
func (h *hostWriter) enclose(first, last int, before string) {
	insert := func(at int, text string) { h.edits.list = append(h.edits.list, edit{span{at, at}, text}) }
	insert(h.tokens[first].Offset, before)
	insert(h.tokens[last].End(), ")")
}

// withArms is the tokens from first to last as they will be, on one line.
func (h *hostWriter) withArms(first, last int, lines []int) string {
	var b strings.Builder
	for i := first; i <= last; i++ {
		if colon, end := h.conditional(i, lines); end > 0 && end <= last+1 {
			x, y := h.withArms(i+1, colon-1, lines), h.withArms(colon+1, end-1, lines)
			b.WriteString(" ? " + arm(x, y) + x + ") : " + arm(y, x) + y + ")")
			i = end - 1
			continue
		}
		b.WriteString(" " + h.rewritten(i, i))
	}
	return b.String()
}

// conditional finds the ':' that belongs to the '?' at i and the end of the value behind it, if the
// '?' is on one of the lines. The end is 0 if it is not, or if lines of the preprocessor are between.
func (s *structure) conditional(i int, lines []int) (colon, end int) {
	if !s.tokens[i].is("?") || !slices.Contains(lines, s.tokens[i].Line) {
		return 0, 0
	}
	depth := 0 // of further conditional operators
	for j := i + 1; j < len(s.tokens); j++ {
		switch t := s.tokens[j]; {
		case s.match[j] > j:
			j = s.match[j]
		case t.is("?"):
			depth++
		case t.is(":") && depth > 0:
			depth--
		case t.is(":") && colon == 0:
			colon = j
		case t.is("<") && s.at(j-1).Kind == Identifier:
			// Template arguments, if a call or a name follows.
			if k := s.skipAngles(j, len(s.tokens)); k > j && (s.at(k).is("(") || s.at(k).is("::") || s.at(k).is("{")) {
				j = k - 1
			}
		case colon > 0 && t.is(","), t.is(";"), t.is(":"), s.match[j] >= 0:
			if colon <= i+1 || j == colon+1 || strings.Contains(s.text[s.tokens[i].Offset:t.Offset], "\n#") {
				return 0, 0
			}
			return colon, j
		}
	}
	return 0, 0
}
