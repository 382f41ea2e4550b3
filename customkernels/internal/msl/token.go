package msl

import "strings"

// Kind is the lexical class of a [Token].
type Kind uint8

// The kinds of tokens.
const (
	Identifier Kind = iota + 1 // identifiers and keywords
	Number                     // preprocessing numbers, such as 1.5e-3h
	String                     // string literals, raw ones too
	Char                       // character literals
	Punct                      // operators and brackets; "[[" and ">>" are two tokens each
	Comment                    // a line comment without its newline, or a block comment
	HeaderName                 // <name> or "name" after #include
	Invalid                    // a byte that begins no token of MSL, such as a quote without an end; an open block comment
)

// Token is one piece of a text. Text holds its exact bytes. Only white space and line continuations lie between
// tokens, so tokens and gaps together make up the text, byte for byte.
type Token struct {
	Kind      Kind
	Text      string
	Offset    int // bytes from the start of the text
	Line      int // from 1
	Column    int // in bytes, from 1
	Directive int // number of the directive, from 1; 0 outside of directives
}

// End returns the offset of the byte after the token.
func (t Token) End() int { return t.Offset + len(t.Text) }

// Is reports whether the token is this punctuator or identifier.
func (t Token) Is(text string) bool {
	return t.Text == text && (t.Kind == Punct || t.Kind == Identifier)
}

// Tokenize splits a text into tokens. It accepts any input: bytes that form no token of MSL become tokens of kind
// [Invalid].
func Tokenize(text string) []Token {
	l := lexer{text: text, line: 1, lineStart: true, tokens: make([]Token, 0, len(text)/4)}
	for l.next() {
	}
	return l.tokens
}

// lexer is the state of [Tokenize].
type lexer struct {
	text      string
	at        int // offset of the next byte
	line      int
	lineBegin int // offset of the current line's first byte

	lineStart  bool // only white space and comments so far in this logical line
	directive  int  // number of the current directive; 0 if there is none
	directives int  // directives so far
	hash       bool // the last token, comments aside, is the '#' of the directive
	include    bool // the directive's next token is a header name

	tokens []Token
}

// peek returns the byte at a distance from the current one, or 0 beyond the end.
func (l *lexer) peek(distance int) byte {
	if l.at+distance < len(l.text) {
		return l.text[l.at+distance]
	}
	return 0
}

// continuation returns the length of the line continuation at an offset, or 0.
func continuation(text string, at int) int {
	switch {
	case strings.HasPrefix(text[at:], "\\\n"):
		return 2
	case strings.HasPrefix(text[at:], "\\\r\n"):
		return 3
	}
	return 0
}

// skipSpace skips white space and line continuations.
func (l *lexer) skipSpace() {
	for l.at < len(l.text) {
		switch c := l.text[l.at]; c {
		case '\n':
			l.at++
			l.newline()
			l.lineStart, l.directive, l.hash, l.include = true, 0, false, false
		case ' ', '\t', '\r', '\v', '\f':
			l.at++
		case '\\':
			n := continuation(l.text, l.at)
			if n == 0 {
				return
			}
			l.at += n
			l.newline()
		default:
			return
		}
	}
}

// newline begins a line at the current offset.
func (l *lexer) newline() {
	l.line++
	l.lineBegin = l.at
}

// next adds one token. It returns false at the end of the text.
func (l *lexer) next() bool {
	l.skipSpace()
	if l.at >= len(l.text) {
		return false
	}
	start, line, column := l.at, l.line, l.at-l.lineBegin+1
	if l.lineStart && l.text[l.at] == '#' {
		l.directives++
		l.directive = l.directives
	}
	directive := l.directive
	kind := l.scan()
	text := l.text[start:l.at]
	for i := range len(text) {
		if text[i] == '\n' {
			l.line++
			l.lineBegin = start + i + 1
		}
	}
	if kind != Comment {
		l.include = l.hash && (text == "include" || text == "import")
		l.hash = l.lineStart && text == "#"
		l.lineStart = false
	}
	l.tokens = append(l.tokens, Token{kind, text, start, line, column, directive})
	return true
}

// scan skips one token and returns its kind.
func (l *lexer) scan() Kind {
	c := l.text[l.at]
	switch {
	case c == '/' && l.peek(1) == '/':
		l.lineComment()
		return Comment
	case c == '/' && l.peek(1) == '*':
		end := strings.Index(l.text[l.at+2:], "*/")
		if end < 0 {
			l.at = len(l.text)
			return Invalid
		}
		l.at += end + 4
		return Comment
	case l.include && (c == '<' || c == '"'):
		return l.headerName(c)
	case isIdentifierStart(c):
		for l.at < len(l.text) && isIdentifierPart(l.text[l.at]) {
			l.at++
		}
		return l.prefixedLiteral()
	case IsDigit(c), c == '.' && IsDigit(l.peek(1)):
		l.number()
		return Number
	case c == '"', c == '\'':
		return l.quoted(c)
	case strings.IndexByte("(){}[];,~?", c) >= 0: // no operator of several bytes begins with these
		l.at++
		return Punct
	}
	for _, p := range punctuators {
		if strings.HasPrefix(l.text[l.at:], p) {
			l.at += len(p)
			return Punct
		}
	}
	l.at++
	if strings.IndexByte("<>:.!+-*/%^&|=#", c) >= 0 {
		return Punct
	}
	return Invalid
}

// punctuators holds the operators of several bytes, longer ones first. ">>" is missing: two tokens '>' can be a shift
// or the end of nested template arguments.
var punctuators = []string{
	"...", "<<=", ">>=", "->*",
	"->", "++", "--", "<<", "<=", ">=", "==", "!=", "&&", "||", "::", "##", ".*",
	"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
}

// lineComment skips to the newline that ends the comment.
func (l *lexer) lineComment() {
	for l.at < len(l.text) && l.text[l.at] != '\n' {
		if n := continuation(l.text, l.at); n > 0 {
			l.at += n
		} else {
			l.at++
		}
	}
}

// headerName skips <name> or "name" within the line.
func (l *lexer) headerName(open byte) Kind {
	closing := byte('"')
	if open == '<' {
		closing = '>'
	}
	for i := l.at + 1; i < len(l.text) && l.text[i] != '\n'; i++ {
		if l.text[i] == closing {
			l.at = i + 1
			return HeaderName
		}
	}
	l.at++
	return Invalid
}

// number skips a preprocessing number.
func (l *lexer) number() {
	for l.at < len(l.text) {
		c := l.text[l.at]
		switch {
		case (c == '+' || c == '-') && strings.IndexByte("eEpP", l.text[l.at-1]) >= 0:
		case c == '\'' && isIdentifierPart(l.peek(1)):
		case c == '.' || isIdentifierPart(c):
		default:
			return
		}
		l.at++
	}
}

// quoted skips a string or character literal. If the literal does not end on its line, only the quote is an invalid
// token, so that an apostrophe in #error hides nothing.
func (l *lexer) quoted(quote byte) Kind {
	for i := l.at + 1; i < len(l.text); i++ {
		switch c := l.text[i]; c {
		case quote:
			l.at = i + 1
			if quote == '"' {
				return String
			}
			return Char
		case '\\':
			if n := continuation(l.text, i); n > 0 {
				i += n - 1
			} else if i+1 < len(l.text) && l.text[i+1] != '\n' {
				i++
			}
		case '\n':
			l.at++
			return Invalid
		}
	}
	l.at++
	return Invalid
}

// prefixedLiteral skips the literal whose prefix is the identifier that ends here, if there is one.
func (l *lexer) prefixedLiteral() Kind {
	if c := l.peek(0); c != '"' && c != '\'' {
		return Identifier
	}
	start := l.at
	for start > 0 && isIdentifierPart(l.text[start-1]) {
		start--
	}
	switch l.text[start:l.at] {
	case "L", "u", "U", "u8":
		mark := l.at
		kind := l.quoted(l.peek(0))
		if kind == Invalid {
			l.at = mark
			return Identifier
		}
		return kind
	case "R", "LR", "uR", "UR", "u8R":
		if l.peek(0) != '"' {
			return Identifier
		}
		rest := l.text[l.at+1:]
		open := strings.IndexByte(rest[:min(len(rest), 17)], '(')
		if open < 0 {
			return Identifier
		}
		end := strings.Index(rest[open:], ")"+rest[:open]+"\"")
		if end < 0 {
			return Identifier
		}
		l.at += 1 + open + end + open + 2
		return String
	}
	return Identifier
}

// IsDigit reports whether a byte is a decimal digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

func isIdentifierStart(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '$' || c >= 0x80
}

func isIdentifierPart(c byte) bool { return isIdentifierStart(c) || IsDigit(c) }
