package msl

import "strings"

// initializers rewrites what OpenCL's vectors lack of C++'s initialization.
//
//	float2 v(a, b);         float2 v = ::metal::mlxg_make<float2>(a, b);
//	float2 v = {a};         float2 v = ::metal::mlxg_make<float2>(a);
//	f({a, b, c})            f(::metal::mlxg_list(a, b, c))
func (w *checkWriter) initializers() {
	aliases := w.vectorAliases()
	bodies := functionBodies(w.structure, w.items)
	var open []int // the brackets around a token
	for i, t := range w.tokens {
		if w.match[i] > i {
			if len(open) > 0 && w.braceArgument(i, open[len(open)-1]) {
				w.replace(t, "::metal::mlxg_list(")
				w.replace(w.tokens[w.match[i]], ")")
			}
			open = append(open, i)
		} else if w.match[i] >= 0 {
			open = open[:len(open)-1]
		}
		if t.Kind != Identifier || !bodies.contains(t.Offset) && !w.at(i-1).is("constant") && !w.at(i-1).is("constexpr") {
			continue
		}
		switch next := w.at(i + 1); {
		case (t.Text == "vec" || t.Text == "packed_vec") && next.is("<"):
			end := w.skipAngles(i+1, len(w.tokens))
			w.directly(end, "::metal::"+w.join(i, end-1))
		case isVector(t.Text) || aliases[t.Text]:
			w.directly(i+1, t.Text)
		}
	}
}

// directly rewrites the variables of a vector type, the first with its name at token i.
func (w *checkWriter) directly(i int, kind string) {
	for w.at(i).Kind == Identifier {
		open, before := i+1, " = "
		if w.at(open).is("=") && w.at(open+1).is("{") {
			open, before = i+2, ""
		}
		if !w.at(open).is("{") && (before == "" || !w.at(open).is("(")) {
			return
		}
		end := w.match[open]
		if end == open+1 || before != "" && w.declaresParameter(open+1, end) || before == "" && w.nested(open) {
			return
		}
		w.replace(w.tokens[open], before+"::metal::mlxg_make<"+kind+">(")
		w.replace(w.tokens[end], ")")
		if !w.at(end + 1).is(",") {
			return
		}
		i = end + 2
	}
}

// nested reports whether the braces at a token have braces within.
func (w *checkWriter) nested(open int) bool {
	for i := open + 1; i < w.match[open]; i++ {
		if w.tokens[i].is("{") {
			return true
		}
	}
	return false
}

// declaresParameter reports whether the tokens [first, end) between parentheses are parameters of
// a function rather than values: two words stand side by side.
func (w *checkWriter) declaresParameter(first, end int) bool {
	for i := first; i+1 < end; i++ {
		if t := w.tokens[i]; t.Kind == Identifier && w.tokens[i+1].Kind == Identifier && !expressionWord[t.Text] {
			return true
		}
	}
	return false
}

// braceArgument reports whether token i opens braces that are an argument of the call whose
// parenthesis is the token at open.
func (w *checkWriter) braceArgument(i, open int) bool {
	callee := w.at(open - 1)
	if !w.tokens[i].is("{") || !w.tokens[open].is("(") || callee.Kind != Identifier && !callee.is(">") ||
		!w.at(i-1).is("(") && !w.at(i-1).is(",") {
		return false
	}
	// Braces within are those of a structure or an array, which OpenCL takes.
	return !w.nested(i) && w.match[i] > i+1 && !w.at(i+1).is(".")
}

// vectorAliases lists the names that the text gives to vector types.
func (w *checkWriter) vectorAliases() map[string]bool {
	aliases := map[string]bool{}
	vector := func(text string) bool {
		text = strings.TrimPrefix(text, "metal::")
		return isVector(text) || strings.HasPrefix(text, "vec<") && strings.HasSuffix(text, ">")
	}
	for i, t := range w.tokens {
		end := i
		for (t.is("using") || t.is("typedef")) && end < len(w.tokens) && !w.tokens[end].is(";") {
			end++
		}
		switch {
		case end < i+3:
		case t.is("using") && w.at(i+2).is("=") && vector(w.join(i+3, end-1)):
			aliases[w.at(i+1).Text] = true
		case t.is("typedef") && vector(w.join(i+1, end-2)):
			aliases[w.at(end-1).Text] = true
		}
	}
	return aliases
}

// floatLiteral reports whether a number is a floating-point literal without a suffix, which Metal
// takes for a float and C++ for a double.
func floatLiteral(text string) bool {
	text = strings.ToLower(text)
	if strings.HasPrefix(text, "0x") {
		return strings.Contains(text, "p") && isDigit(text[len(text)-1])
	}
	last := text[len(text)-1]
	return strings.ContainsAny(text, ".e") && (isDigit(last) || last == '.')
}
