package checker

import (
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// fills are the bytes with which the variables of a filled program begin, one per run: zero, a huge positive number
// and a huge negative number, in every integer and floating-point type.
var fills = []byte{0x00, 0x7b, 0xfb}

// fillVariables adds, after each declaration of local variables without a value, calls that fill them with
// mlxg_checked_fill. Lines keep their numbers.
func fillVariables(text string) string {
	tokens := slices.DeleteFunc(msl.Tokenize(text), func(t msl.Token) bool {
		return t.Kind == msl.Comment || t.Directive != 0
	})
	edits := msl.Edits{Text: text}
	var open []bool // for each open brace and parenthesis, whether it holds statements
	statements := func() bool { return len(open) > 0 && open[len(open)-1] }
	for i, t := range tokens {
		switch t.Text {
		case "{":
			open = append(open, opensStatements(tokens, i, statements()))
		case "(":
			open = append(open, false)
		case "}", ")":
			open = open[:max(len(open)-1, 0)]
		}
		if !slices.Contains([]string{"{", "}", ";"}, t.Text) || !statements() {
			continue
		}
		names, end := unsetVariables(tokens[i+1:])
		if len(names) > 0 {
			edits.Insert(tokens[i+1+end].End(), " mlxg::checker::fill("+strings.Join(names, "); mlxg::checker::fill(")+");")
		}
	}
	return edits.Apply()
}

// opensStatements reports whether the brace at tokens[i] begins a function or a block, and not a class, an enumeration,
// a namespace or a list of values. inside reports whether the brace is among statements.
func opensStatements(tokens []msl.Token, i int, inside bool) bool {
	if i == 0 {
		return false
	}
	switch before := tokens[i-1]; before.Text {
	case ")", "const", "noexcept", "mutable":
		return true
	case "{", "}", ";", ":", "else", "do":
		return inside
	}
	return false
}

// notTypes are words that begin a statement which declares no variable, or one that must have a value.
var notTypes = []string{
	"auto", "break", "case", "class", "const", "constexpr", "continue", "default", "delete", "do", "else", "enum", "extern",
	"for", "goto", "if", "inline", "namespace", "new", "operator", "return", "static", "static_assert", "struct", "switch",
	"template", "throw", "try", "typedef", "union", "using", "while",
}

// numberWords are the words that may be combined to a type.
var numberWords = []string{"unsigned", "signed", "long", "int", "short", "char"}

// unsetVariables returns the names of the variables without a value that the first statement declares, and the index of
// its semicolon. It returns none if the statement is no declaration, or one that it does not understand.
func unsetVariables(tokens []msl.Token) (names []string, end int) {
	at := func(i int) string {
		if i >= len(tokens) {
			return ""
		}
		return tokens[i].Text
	}
	word := func(i int) bool { return i < len(tokens) && tokens[i].Kind == msl.Identifier }
	i := 0
	for at(i) == "volatile" || at(i) == "typename" || at(i) == "thread" {
		i++
	}
	if !word(i) || slices.Contains(notTypes, at(i)) {
		return nil, 0
	}
	for number := slices.Contains(numberWords, at(i)); ; {
		i++
		switch {
		case at(i) == "::" && word(i+1):
			i++
			continue
		case at(i) == "<":
			i = closing(tokens, i)
			if at(i+1) == "::" && word(i+2) {
				i += 2
				continue
			}
			i++
		case number && slices.Contains(numberWords, at(i)):
			continue
		}
		break
	}
	for {
		if !word(i) {
			return nil, 0
		}
		name := at(i)
		i++
		for at(i) == "[" {
			i = closing(tokens, i) + 1
		}
		switch at(i) {
		case ",", ";":
			names = append(names, name)
		case "=":
			for at(i) != "," && at(i) != ";" && at(i) != "" {
				if slices.Contains([]string{"(", "[", "{"}, at(i)) {
					i = closing(tokens, i)
				}
				i++
			}
		default:
			return nil, 0
		}
		if at(i) == ";" {
			return names, i
		}
		if at(i) != "," {
			return nil, 0
		}
		i++
	}
}

// closing returns the index of the bracket that closes tokens[i], or the number of tokens. Angle brackets hold no
// statements.
func closing(tokens []msl.Token, i int) int {
	open := tokens[i].Text
	closed := map[string]string{"(": ")", "[": "]", "{": "}", "<": ">"}[open]
	depth := 0
	for ; i < len(tokens); i++ {
		switch tokens[i].Text {
		case open:
			depth++
		case closed:
			if depth--; depth == 0 {
				return i
			}
		case ";":
			if open == "<" {
				return len(tokens)
			}
		}
	}
	return i
}
