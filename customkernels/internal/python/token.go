// Package python finds calls of mx.fast.metal_kernel in Python files. It reads string literals and the arguments of
// these calls, and runs no Python.
package python

import (
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// token is a token of Python. Comments and continuations of lines are no tokens. A newline in brackets is none either.
type token struct {
	kind   kind
	text   string // of a string: with prefix and quotes
	offset int
	line   int // from 1
	column int // in bytes, from 1
}

type kind uint8

const (
	end kind = iota
	newline
	name
	literal // a string
	other   // a number or one character
)

// scan splits a file into tokens. It accepts any text.
func scan(src string) []token {
	var list []token
	line, begin, depth := 1, 0, 0
	for at := 0; at < len(src); {
		t := token{other, src[at : at+1], at, line, at - begin + 1}
		switch c := src[at]; {
		case c == '\n':
			t.kind = newline
			if depth > 0 {
				t.text = ""
			}
		case c == ' ' || c == '\t' || c == '\r' || c == '\f':
			t.text = ""
			at++
		case c == '\\' && at+1 < len(src) && (src[at+1] == '\n' || src[at+1] == '\r'):
			t.text = ""
			at += strings.IndexByte(src[at:]+"\n", '\n')
			if at < len(src) {
				at++
				line, begin = line+1, at
			}
		case c == '#':
			t.text = ""
			at += strings.IndexByte(src[at:]+"\n", '\n')
		case isWord(c) && !msl.IsDigit(c):
			n := 1
			for at+n < len(src) && isWord(src[at+n]) {
				n++
			}
			t.kind, t.text = name, src[at:at+n]
			if at+n < len(src) && (src[at+n] == '"' || src[at+n] == '\'') && isPrefix(t.text) {
				t.kind, t.text = literal, src[at:at+n+quoted(src[at+n:])]
			}
		case c == '"' || c == '\'':
			t.kind, t.text = literal, src[at:at+quoted(src[at:])]
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth = max(depth-1, 0)
		}
		if t.text != "" {
			list = append(list, t)
			for i := range len(t.text) {
				if t.text[i] == '\n' {
					line, begin = line+1, at+i+1
				}
			}
			at += len(t.text)
		} else if t.kind == newline { // in brackets
			at++
			line, begin = line+1, at
		}
	}
	return append(list, token{kind: end, offset: len(src), line: line, column: 1})
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c >= 0x80 || msl.IsDigit(c)
}

// isPrefix reports whether a word is the prefix of a string literal.
func isPrefix(word string) bool {
	return len(word) <= 2 && strings.Trim(strings.ToLower(word), "rbuft") == ""
}

// quoted returns the length of a string literal from its quote on. A literal that does not end reaches to the end of the
// line, or of the text if it has three quotes.
func quoted(src string) int {
	quote := src[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(src, triple) {
		quote = triple
	}
	for i := len(quote); i < len(src); i++ {
		switch {
		case src[i] == '\\':
			i++ // in raw literals too, a quote after a backslash does not end the literal
		case strings.HasPrefix(src[i:], quote):
			return i + len(quote)
		case src[i] == '\n' && len(quote) == 1:
			return i
		}
	}
	return len(src)
}
