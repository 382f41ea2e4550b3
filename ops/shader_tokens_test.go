package ops

import (
	"regexp"
	"slices"
	"strings"
)

// A shaderToken is an identifier, a number or a punctuator of a shader file.
type shaderToken struct {
	text       string
	start, end int
	function   string // the function whose body contains it; empty outside bodies
	head       string // the declaration of the function
	subscript  bool   // it is a bracket of an array access, or between two
	declared   bool   // it is a bracket of an array declaration, or between two
	statement  [2]int // the indices of the first and one past the last token of its statement
}

var shaderSyntax = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/|(?m:^[ \t]*#[^\n]*)|` +
	`[A-Za-z_]\w*|\d[\w.]*|::|\[\[|\]\]|<<|>>|[-+*/%&|^<>=!]=|\+\+|--|&&|\|\||[^\s\w]`)

// shaderTokens splits a shader into tokens, without comments and directives.
func shaderTokens(text string) []shaderToken {
	var tokens []shaderToken
	var brackets []shaderToken // the open square brackets
	depth, parens := 0, 0      // the braces of types do not count, because their members have bodies
	var candidate, function string
	var head string
	var types []string // the declarations of the types whose braces are open
	headStart := 0
	for _, at := range shaderSyntax.FindAllStringIndex(text, -1) {
		t := shaderToken{text: text[at[0]:at[1]], start: at[0], end: at[1]}
		comment := strings.HasPrefix(t.text, "//") || strings.HasPrefix(t.text, "/*")
		if comment || strings.HasPrefix(strings.TrimSpace(t.text), "#") {
			continue
		}
		previous := func(n int) string {
			if len(tokens) < n {
				return ""
			}
			return tokens[len(tokens)-n].text
		}
		switch t.text {
		case "{":
			switch {
			case depth > 0:
				depth++
			case previous(1) == ")" || previous(1) == "const":
				depth, function = 1, candidate
				head = strings.Join(types, "") + text[headStart:t.start]
			default:
				types, headStart = append(types, text[headStart:t.start]), t.end
			}
		case "}":
			if depth > 0 {
				depth--
			} else {
				types = types[:len(types)-1]
			}
			if depth == 0 {
				headStart = t.end
			}
		case "(":
			if depth == 0 && parens == 0 {
				candidate = previous(1)
			}
			parens++
		case ")":
			parens--
		case "[":
			if depth > 0 {
				// "float sums[" and "Sums<L> sums[" are declarations, and so are the second dimension of either and
				// "squares[" in "float sums[C], squares[C]".
				t.declared = isWord(previous(1)) && isWord(previous(2)) && previous(2) != "return" ||
					isWord(previous(1)) && previous(2) == ">" &&
						tokens[len(tokens)-2].start == tokens[len(tokens)-3].end ||
					previous(1) == "]" && tokens[len(tokens)-1].declared ||
					isWord(previous(1)) && previous(2) == "," && previous(3) == "]" && tokens[len(tokens)-3].declared
				t.subscript = !t.declared
				brackets = append(brackets, t)
			}
		}
		if depth > 0 {
			t.function, t.head = function, head
			if len(brackets) > 0 {
				open := brackets[len(brackets)-1]
				t.subscript, t.declared = open.subscript, open.declared
			}
			if t.text == "]" && len(brackets) > 0 {
				brackets = brackets[:len(brackets)-1]
			}
		}
		tokens = append(tokens, t)
	}
	findStatements(tokens)
	return tokens
}

// findStatements sets the statement of each token in a function body. A statement ends with a semicolon outside
// parentheses, or at the brace of a block. The braces of an initializer are part of their statement.
func findStatements(tokens []shaderToken) {
	first, nested := 0, 0
	finish := func(end int) {
		for i := first; i < end; i++ {
			tokens[i].statement = [2]int{first, end}
		}
		first = end
	}
	for i, t := range tokens {
		switch t.text {
		case "(", "[":
			nested++
		case ")", "]":
			nested--
		case "{":
			if nested > 0 || t.function != "" && !startsBlock(tokens[i-1].text) {
				nested++
			} else {
				finish(i)
				first = i + 1
			}
		case "}":
			if nested > 0 {
				nested--
			} else {
				finish(i)
				first = i + 1
			}
		case ";":
			if nested == 0 {
				finish(i + 1)
			}
		}
	}
}

// startsBlock reports whether a brace after the token starts a block, not an initializer.
func startsBlock(previous string) bool {
	return slices.Contains([]string{")", "else", "do", "const", ";", "{", "}"}, previous)
}

func isWord(s string) bool { return s != "" && (s[0] == '_' || s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z') }

// endsOperand reports whether a token can be the end of an operand.
func endsOperand(s string) bool {
	return s == ")" || s == "]" || s != "" && s[0] >= '0' && s[0] <= '9' || isWord(s) && s != "return"
}
