package translate

import (
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
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
	for i := range h.Tokens {
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
	h.edits.Insert(h.Tokens[first].Offset, before)
	h.edits.Insert(h.Tokens[last].End(), ")")
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
// '?' is on one of the lineh. The end is 0 if it is not, or if lines of the preprocessor are between.
func (h *hostWriter) conditional(i int, lines []int) (colon, end int) {
	if !h.Tokens[i].Is("?") || !slices.Contains(lines, h.Tokens[i].Line) {
		return 0, 0
	}
	depth := 0 // of further conditional operators
	for j := i + 1; j < len(h.Tokens); j++ {
		switch t := h.Tokens[j]; {
		case h.Match[j] > j:
			j = h.Match[j]
		case t.Is("?"):
			depth++
		case t.Is(":") && depth > 0:
			depth--
		case t.Is(":") && colon == 0:
			colon = j
		case t.Is("<") && h.At(j-1).Kind == msl.Identifier:
			// Template arguments, if a call or a name followh.
			if k := h.SkipAngles(j, len(h.Tokens)); k > j && (h.At(k).Is("(") || h.At(k).Is("::") || h.At(k).Is("{")) {
				j = k - 1
			}
		case colon > 0 && t.Is(","), t.Is(";"), t.Is(":"), h.Match[j] >= 0:
			if colon <= i+1 || j == colon+1 || strings.Contains(h.Text[h.Tokens[i].Offset:t.Offset], "\n#") {
				return 0, 0
			}
			return colon, j
		}
	}
	return 0, 0
}
