package addrspace

import (
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// initializers rewrites initializations of C++ that OpenCL's vectors do not have:
//
//	float2 v(a, b);         float2 v = ::metal::mlxg_make<float2>(a, b);
//	float2 v = {a};         float2 v = ::metal::mlxg_make<float2>(a);
//	f({a, b, c})            f(::metal::mlxg_list(a, b, c))
func (w *rewriter) initializers() {
	aliases := w.vectorAliases()
	bodies := msl.FunctionBodies(w.Structure, w.items)
	var open []int // brackets around the current token
	for i, t := range w.Tokens {
		if w.Match[i] > i {
			if len(open) > 0 && w.braceArgument(i, open[len(open)-1]) {
				w.replace(t, "::metal::mlxg_list(")
				w.replace(w.Tokens[w.Match[i]], ")")
			}
			open = append(open, i)
		} else if w.Match[i] >= 0 {
			open = open[:len(open)-1]
		}
		if t.Kind != msl.Identifier || !bodies.Contains(t.Offset) && !w.At(i-1).Is("constant") &&
			!w.At(i-1).Is("constexpr") {
			continue
		}
		switch next := w.At(i + 1); {
		case (t.Text == "vec" || t.Text == "packed_vec") && next.Is("<"):
			end := w.SkipAngles(i+1, len(w.Tokens))
			w.initializedVariables(end, "::metal::"+w.Join(i, end-1))
		case isVector(t.Text) || aliases[t.Text]:
			w.initializedVariables(i+1, t.Text)
		}
	}
}

// initializedVariables rewrites the variables of a vector type whose first name is token i.
func (w *rewriter) initializedVariables(i int, kind string) {
	for w.At(i).Kind == msl.Identifier {
		open, before := i+1, " = "
		if w.At(open).Is("=") && w.At(open+1).Is("{") {
			open, before = i+2, ""
		}
		if !w.At(open).Is("{") && (before == "" || !w.At(open).Is("(")) {
			return
		}
		end := w.Match[open]
		if end == open+1 || before != "" && w.declaresParameter(open+1, end) || before == "" && w.nested(open) {
			return
		}
		w.replace(w.Tokens[open], before+"::metal::mlxg_make<"+kind+">(")
		w.replace(w.Tokens[end], ")")
		if !w.At(end + 1).Is(",") {
			return
		}
		i = end + 2
	}
}

// nested reports whether the braces at a token contain braces.
func (w *rewriter) nested(open int) bool {
	for i := open + 1; i < w.Match[open]; i++ {
		if w.Tokens[i].Is("{") {
			return true
		}
	}
	return false
}

// declaresParameter reports whether the tokens [first, end) between parentheses are a function's parameters rather
// than values: two words are adjacent.
func (w *rewriter) declaresParameter(first, end int) bool {
	for i := first; i+1 < end; i++ {
		if t := w.Tokens[i]; t.Kind == msl.Identifier && w.Tokens[i+1].Kind == msl.Identifier &&
			!msl.ExpressionWords[t.Text] {
			return true
		}
	}
	return false
}

// braceArgument reports whether token i opens braces that are an argument of the call with the parenthesis at open.
func (w *rewriter) braceArgument(i, open int) bool {
	callee := w.At(open - 1)
	if !w.Tokens[i].Is("{") || !w.Tokens[open].Is("(") || callee.Kind != msl.Identifier && !callee.Is(">") ||
		!w.At(i-1).Is("(") && !w.At(i-1).Is(",") {
		return false
	}
	// Nested braces initialize a structure or an array, which OpenCL supports.
	return !w.nested(i) && w.Match[i] > i+1 && !w.At(i+1).Is(".")
}

// vectorAliases returns the names that the text gives to vector types.
func (w *rewriter) vectorAliases() map[string]bool {
	aliases := map[string]bool{}
	vector := func(text string) bool {
		text = strings.TrimPrefix(text, "metal::")
		return isVector(text) || strings.HasPrefix(text, "vec<") && strings.HasSuffix(text, ">")
	}
	for i, t := range w.Tokens {
		end := i
		for (t.Is("using") || t.Is("typedef")) && end < len(w.Tokens) && !w.Tokens[end].Is(";") {
			end++
		}
		switch {
		case end < i+3:
		case t.Is("using") && w.At(i+2).Is("=") && vector(w.Join(i+3, end-1)):
			aliases[w.At(i+1).Text] = true
		case t.Is("typedef") && vector(w.Join(i+1, end-2)):
			aliases[w.At(end-1).Text] = true
		}
	}
	return aliases
}

// floatLiteral reports whether a number is a floating-point literal without a suffix, which is a float in Metal and a
// double in C++.
func floatLiteral(text string) bool {
	text = strings.ToLower(text)
	if strings.HasPrefix(text, "0x") {
		return strings.Contains(text, "p") && msl.IsDigit(text[len(text)-1])
	}
	last := text[len(text)-1]
	return strings.ContainsAny(text, ".e") && (msl.IsDigit(last) || last == '.')
}
