package msl

import (
	"slices"
	"strings"
	"sync"
)

// Structure is a text with its tokens and matched brackets. Token indices count Tokens unless a comment says All.
type Structure struct {
	file     string
	Text     string
	lines    []Line                 // origin of each line of the text; nil if the text is the file
	All      []Token                // every token, including comments and directives
	Excluded []bool                 // for each of All, whether the preprocessor excludes it
	Tokens   []Token                // tokens outside of comments, directives and excluded branches
	Match    []int                  // for each of Tokens, the index of the matching bracket; -1 for other tokens
	macros   func() map[string]bool // names of the macros that directives of the text define
}

// NewStructure tokenizes a text and matches its brackets. It leaves out branches that the text itself excludes from
// preprocessing. If the branches of an undecided conditional unbalance the brackets, only the first branch counts.
// lines holds the origin of each line of the text; nil means the file itself.
func NewStructure(file, text string, lines []Line) (*Structure, error) {
	s := newStructure(file, text, lines)
	off, later, err := s.conditionals(&conditions{})
	if err != nil {
		return nil, err
	}
	s.Excluded = slices.Clone(off)
	s.collect(off)
	if err = s.matchBrackets(); err == nil {
		return s, nil
	}
	for i := range off {
		off[i] = off[i] || later[i]
	}
	s.collect(off)
	if s.matchBrackets() == nil {
		return s, nil
	}
	return nil, err
}

// NewTokens returns the tokens of a text, without matched brackets: only All, and Excluded with no token excluded. lines
// is as in [NewStructure].
func NewTokens(file, text string, lines []Line) *Structure {
	s := newStructure(file, text, lines)
	s.Excluded = make([]bool, len(s.All))
	return s
}

func newStructure(file, text string, lines []Line) *Structure {
	s := &Structure{file: file, Text: text, lines: lines, All: Tokenize(text)}
	s.macros = sync.OnceValue(func() map[string]bool {
		names := map[string]bool{}
		for i := range s.All {
			if s.BeginsDirective(i) {
				if directive, words := s.Directive(i); directive == "define" && len(words) > 0 {
					names[words[0]] = true
				}
			}
		}
		return names
	})
	return s
}

// IsMacro reports whether a directive of the text defines a macro with this name.
func (s *Structure) IsMacro(name string) bool { return s.macros()[name] }

// File returns the name of the file.
func (s *Structure) File() string { return s.file }

// Kept returns the tokens that the preprocessor may keep, including comments and directives.
func (s *Structure) Kept() []Token {
	var kept []Token
	for i, t := range s.All {
		if !s.Excluded[i] {
			kept = append(kept, t)
		}
	}
	return kept
}

// Position returns the position of a token.
func (s *Structure) Position(t Token) Position {
	if s.lines == nil {
		return Position{File: s.file, Offset: t.Offset, Line: t.Line, Column: t.Column}
	}
	return s.lines[t.Line-1].at(t.Column)
}

// origin returns the origin of a line of the text.
func (s *Structure) origin(line int) Position {
	if s.lines == nil {
		return Position{File: s.file, Line: line}
	}
	return Position{File: s.lines[line-1].File, Line: s.lines[line-1].Line}
}

// Origin returns the position in the shader's files of a line and column of the text. ok is false outside of the text.
func (s *Structure) Origin(line, column int) (at Position, ok bool) {
	switch {
	case line < 1, s.lines != nil && line > len(s.lines):
		return Position{}, false
	case s.lines == nil:
		return Position{File: s.file, Line: line, Column: column}, line <= 1+strings.Count(s.Text, "\n")
	}
	return s.lines[line-1].at(column), true
}

// At returns the token at an index. It is empty outside of the text.
func (s *Structure) At(i int) Token {
	if i < 0 || i >= len(s.Tokens) {
		return Token{}
	}
	return s.Tokens[i]
}

// ErrorAt returns an error at the token with this index, or at the last token if the index is greater.
func (s *Structure) ErrorAt(i int, format string, args ...any) *Error {
	if len(s.Tokens) == 0 {
		return Errorf(Position{File: s.file, Line: 1, Column: 1}, format, args...)
	}
	return Errorf(s.Position(s.Tokens[min(max(i, 0), len(s.Tokens)-1)]), format, args...)
}

// source returns the text from token first to token last, inclusive.
func (s *Structure) source(first, last int) string {
	if first > last {
		return ""
	}
	return s.Text[s.Tokens[first].Offset:s.Tokens[last].End()]
}

// Join returns the tokens from first to last with single spaces between words.
func (s *Structure) Join(first, last int) string {
	var b strings.Builder
	for i := first; i <= last; i++ {
		t := s.Tokens[i]
		if i > first && t.Kind != Punct && s.Tokens[i-1].Kind != Punct {
			b.WriteByte(' ')
		}
		b.WriteString(t.Text)
	}
	return b.String()
}

// collect sets Tokens.
func (s *Structure) collect(off []bool) {
	s.Tokens = make([]Token, 0, len(s.All))
	for i, t := range s.All {
		if t.Kind != Comment && t.Directive == 0 && !off[i] {
			s.Tokens = append(s.Tokens, t)
		}
	}
}

// conditionals marks the tokens of All that the preprocessor excludes (off), and those in the second and later
// branches of undecided conditionals (later). If known is nil, only the plain values 0, 1, true and false decide a
// condition.
func (s *Structure) conditionals(known *conditions) (off, later []bool, err error) {
	type branch struct {
		off, later bool
		taken      bool // this branch or an earlier one is taken for certain
		open       bool // an earlier branch may be taken
		certain    bool // this branch is taken whenever the conditional is reached
		token      Token
	}
	var stack []branch
	off, later = make([]bool, len(s.All)), make([]bool, len(s.All))
	for i, t := range s.All {
		for _, b := range stack {
			off[i] = off[i] || b.off
			later[i] = later[i] || b.later
		}
		if !s.BeginsDirective(i) {
			continue
		}
		name, words := s.Directive(i)
		certain := !slices.ContainsFunc(stack, func(b branch) bool { return !b.certain })
		switch name {
		case "define", "undef":
			if slices.ContainsFunc(stack, func(b branch) bool { return b.off }) {
				break
			}
			if name == "define" {
				known.define(words, certain)
			} else {
				known.undefine(words, certain)
			}
		case "if", "ifdef", "ifndef":
			if len(stack) >= 256 {
				return nil, nil, Errorf(s.Position(t), "conditionals are nested more than 256 deep; simplify them")
			}
			value := known.holds(name, words)
			stack = append(stack, branch{
				off: value.known && value.value == 0, taken: value.known && value.value != 0,
				open: !value.known, certain: value.known && value.value != 0, token: t,
			})
		case "elif", "else":
			if len(stack) == 0 {
				return nil, nil, Errorf(s.Position(t), "#%s without #if; remove it or add the #if", name)
			}
			b := &stack[len(stack)-1]
			value := truthOf(true)
			if name == "elif" {
				value = known.holds("if", words)
			}
			b.later = b.later || !b.off
			b.off = b.taken || value.known && value.value == 0
			b.certain = !b.taken && !b.open && value.known && value.value != 0
			b.taken = b.taken || value.known && value.value != 0
			b.open = b.open || !value.known
		case "endif":
			if len(stack) == 0 {
				return nil, nil, Errorf(s.Position(t), "#endif without #if; remove it or add the #if")
			}
			stack = stack[:len(stack)-1]
		}
	}
	if len(stack) > 0 {
		return nil, nil, Errorf(s.Position(stack[len(stack)-1].token), "this conditional has no #endif; add one")
	}
	return off, later, nil
}

// BeginsDirective reports whether token i of All is the '#' of a directive.
func (s *Structure) BeginsDirective(i int) bool {
	t := s.All[i]
	return t.Is("#") && t.Directive != 0 && (i == 0 || s.All[i-1].Directive != t.Directive)
}

// DirectiveEnd returns the index in All of the first token after the directive that contains token i of All.
func (s *Structure) DirectiveEnd(i int) int {
	number := s.All[i].Directive
	for i < len(s.All) && s.All[i].Directive == number {
		i++
	}
	return i
}

// Directive returns the name and the other tokens of the directive whose '#' is token i of All, without comments.
func (s *Structure) Directive(i int) (name string, words []string) {
	number := s.All[i].Directive
	for i++; i < len(s.All) && s.All[i].Directive == number; i++ {
		switch t := s.All[i]; {
		case t.Kind == Comment:
		case name == "":
			name = t.Text
		default:
			words = append(words, t.Text)
		}
	}
	return name, words
}

// matchBrackets sets Match and rejects unbalanced brackets and invalid tokens.
func (s *Structure) matchBrackets() error {
	s.Match = make([]int, len(s.Tokens))
	var open []int
	for i, t := range s.Tokens {
		s.Match[i] = -1
		if t.Kind == Invalid {
			if strings.HasPrefix(t.Text, "/*") {
				return s.ErrorAt(i, "this comment does not end; add */")
			}
			if t.Text == `"` || t.Text == "'" {
				return s.ErrorAt(i, "this literal does not end on its line; close it with %s", t.Text)
			}
			return s.ErrorAt(i, "the character %q has no meaning in Metal; remove it", t.Text)
		}
		if t.Kind != Punct {
			continue
		}
		switch t.Text {
		case "(", "[", "{":
			open = append(open, i)
		case ")", "]", "}":
			if len(open) == 0 {
				return s.ErrorAt(i, "unbalanced brackets: this %q closes nothing; remove it or add its partner", t.Text)
			}
			o := open[len(open)-1]
			if closing[s.Tokens[o].Text] != t.Text {
				return s.ErrorAt(i, "unbalanced brackets: this %q does not fit the %q at %s; close that first",
					t.Text, s.Tokens[o].Text, s.Position(s.Tokens[o]))
			}
			open = open[:len(open)-1]
			s.Match[i], s.Match[o] = o, i
		}
	}
	if len(open) > 0 {
		o := open[len(open)-1]
		return s.ErrorAt(o, "unbalanced brackets: this %q is never closed; add %q",
			s.Tokens[o].Text, closing[s.Tokens[o].Text])
	}
	return nil
}

var closing = map[string]string{"(": ")", "[": "]", "{": "}"}

// IsAttribute reports whether "[[ … ]]" begins at token i.
func (s *Structure) IsAttribute(i int) bool {
	return s.At(i).Is("[") && s.At(i+1).Is("[") && s.Match[i] == s.Match[i+1]+1
}

// maxAngles is the number of tokens within which a '>' must follow its '<'. It keeps the cost of a text full of '<'
// linear.
const maxAngles = 512

// SkipAngles returns the index of the token after the template arguments whose '<' is token i. It returns i if no '>'
// matches before end.
func (s *Structure) SkipAngles(i, end int) int {
	depth := 0
	for j := i; j < end && j < i+maxAngles; j++ {
		switch t := s.Tokens[j]; {
		case t.Is("<"):
			depth++
		case t.Is(">"):
			if depth--; depth == 0 {
				return j + 1
			}
		case t.Is("(") || t.Is("[") || t.Is("{"):
			j = s.Match[j]
		case t.Is(";") || t.Is(")") || t.Is("]") || t.Is("}"):
			return i
		}
	}
	return i
}

// Split splits the tokens [first, end) at commas outside of all brackets, including the angle brackets of template
// arguments.
func (s *Structure) Split(first, end int) [][2]int {
	var parts [][2]int
	start := first
	for i := first; i < end; i++ {
		switch t := s.Tokens[i]; {
		case t.Is("(") || t.Is("[") || t.Is("{"):
			i = s.Match[i]
		case t.Is("<"):
			if j := s.SkipAngles(i, end); j > i {
				i = j - 1
			}
		case t.Is(","):
			parts = append(parts, [2]int{start, i})
			start = i + 1
		}
	}
	if start < end || len(parts) > 0 {
		parts = append(parts, [2]int{start, end})
	}
	return parts
}
