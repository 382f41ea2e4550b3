package translate

import (
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// conditionals converts the two values of each conditional operator in the given lines to a common type:
//
//	c ? a : b
//
// becomes
//
//	c ? (::mlxg::common_operand<decltype((a)), decltype((b))>)(a) : (::mlxg::common_operand<decltype((b)), decltype((a))>)(b)
//
// In Metal, half is an arithmetic type and has a common type with other arithmetic types. On the host, half and
// swizzles are classes, and C++ finds no common type: both values convert to the type of the other, or neither does.
func (h *rewriter) conditionals(lines []int) {
	if len(lines) == 0 {
		return
	}
	for i := range h.Tokens {
		colon, end := h.conditional(i, lines)
		if end == 0 {
			continue
		}
		a, b := h.withCommonType(i+1, colon-1, lines), h.withCommonType(colon+1, end-1, lines)
		h.enclose(i+1, colon-1, commonOperand(a, b))
		h.enclose(colon+1, end-1, commonOperand(b, a))
	}
}

// commonOperand returns the beginning of a cast of a to the common type of a and b, the two values of a conditional
// operator.
func commonOperand(a, b string) string {
	return "(::mlxg::common_operand<decltype((" + a + ")), decltype((" + b + "))>)("
}

// enclose inserts text before token first and a closing parenthesis behind token last.
func (h *rewriter) enclose(first, last int, before string) {
	h.edits.Insert(h.Tokens[first].Offset, before)
	h.edits.Insert(h.Tokens[last].End(), ")")
}

// withCommonType returns the rewritten tokens from first to last on one line, with the casts of nested conditional
// operators.
func (h *rewriter) withCommonType(first, last int, lines []int) string {
	var b strings.Builder
	for i := first; i <= last; i++ {
		if colon, end := h.conditional(i, lines); end > 0 && end <= last+1 {
			x, y := h.withCommonType(i+1, colon-1, lines), h.withCommonType(colon+1, end-1, lines)
			b.WriteString(" ? " + commonOperand(x, y) + x + ") : " + commonOperand(y, x) + y + ")")
			i = end - 1
			continue
		}
		b.WriteString(" " + h.rewrittenTokens(i, i))
	}
	return b.String()
}

// conditional returns the index of the ':' that belongs to the '?' at i, and the index of the first token after the
// value that follows the ':'. end is 0 if token i is not a '?' in one of the lines, or if a directive interrupts the
// operator.
func (h *rewriter) conditional(i int, lines []int) (colon, end int) {
	if !h.Tokens[i].Is("?") || !slices.Contains(lines, h.Tokens[i].Line) {
		return 0, 0
	}
	depth := 0 // nested conditional operators
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
			// Template arguments, if a call or a name follows.
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
