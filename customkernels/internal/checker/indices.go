package checker

import (
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// checkIndices adds a comparison with 64-bit arithmetic to the subscripts of the text, and to the declarations of the
// unsigned variables that subscripts add or multiply. It covers sums, differences and products of names and numbers.
// Lines keep their numbers.
func checkIndices(text string) string {
	tokens := slices.DeleteFunc(msl.Tokenize(text), func(t msl.Token) bool {
		return t.Kind == msl.Comment || t.Directive != 0
	})
	edits := msl.Edits{Text: text}
	names := map[string]bool{} // of variables in subscripts
	for i := 1; i < len(tokens); i++ {
		before := tokens[i-1]
		if !tokens[i].Is("[") || before.Kind != msl.Identifier && before.Text != "]" && before.Text != ")" {
			continue
		}
		end := closing(tokens, i)
		wide, leaves, ok := wideExpression(tokens[i+1 : min(end, len(tokens))])
		if !ok {
			continue
		}
		for _, name := range leaves {
			names[name] = true
		}
		if len(leaves) > 1 {
			edits.Insert(tokens[i].End(), "mlxg::checker::index(")
			edits.Insert(tokens[end].Offset, ", "+wide+")")
		}
	}
	for i := range tokens {
		if i > 0 && !slices.Contains([]string{"{", "}", ";"}, tokens[i-1].Text) {
			continue
		}
		name, value, end := unsignedDeclaration(tokens[i:])
		if wide, leaves, ok := wideExpression(value); ok && names[name] && len(leaves) > 1 {
			edits.Insert(tokens[i+end].End(), " mlxg::checker::index("+name+", "+wide+");")
		}
	}
	return edits.Apply()
}

// unsignedDeclaration reads "const uint NAME = VALUE;". end is the index of the semicolon. name is "" for any other
// statement.
func unsignedDeclaration(tokens []msl.Token) (name string, value []msl.Token, end int) {
	i := 0
	for i < len(tokens) && (tokens[i].Is("const") || tokens[i].Is("thread")) {
		i++
	}
	if i+3 >= len(tokens) || !slices.Contains([]string{"uint", "uint32_t", "unsigned", "auto"}, tokens[i].Text) {
		return "", nil, 0
	}
	i++
	if tokens[i].Is("int") {
		i++
	}
	if tokens[i].Kind != msl.Identifier || !tokens[i+1].Is("=") {
		return "", nil, 0
	}
	length := slices.IndexFunc(tokens[i:], func(t msl.Token) bool { return t.Is(";") || t.Is("{") || t.Is(",") })
	if length < 2 || !tokens[i+length].Is(";") {
		return "", nil, 0
	}
	return tokens[i].Text, tokens[i+2 : i+length], i + length
}

// wideExpression returns an expression with its names and numbers as 64-bit integers, and the names and numbers. It
// returns false for an expression with other operators than + - *, a call or a subscript.
func wideExpression(tokens []msl.Token) (wide string, leaves []string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch {
		case t.Kind == msl.Number:
			leaves = append(leaves, t.Text)
			b.WriteString("mlxg::checker::wide(" + t.Text + ")")
		case t.Kind == msl.Identifier:
			leaf := t.Text
			for i+2 < len(tokens) && (tokens[i+1].Is(".") || tokens[i+1].Is("->") || tokens[i+1].Is("::")) {
				leaf += tokens[i+1].Text + tokens[i+2].Text
				i += 2
			}
			if i+1 < len(tokens) && (tokens[i+1].Is("(") || tokens[i+1].Kind == msl.Identifier) {
				return "", nil, false
			}
			leaves = append(leaves, leaf)
			b.WriteString("mlxg::checker::wide(" + leaf + ")")
		case slices.Contains([]string{"+", "-", "*", "(", ")"}, t.Text):
			if t.Is(")") && i+1 < len(tokens) && (tokens[i+1].Kind == msl.Identifier || tokens[i+1].Is("(")) {
				return "", nil, false // a cast
			}
			b.WriteString(t.Text)
		default:
			return "", nil, false
		}
	}
	return b.String(), leaves, len(leaves) > 0
}
