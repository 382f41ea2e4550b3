package msl

import (
	"slices"
	"strings"
)

// structure is a text's tokens without comments and preprocessor lines, with their
// brackets matched. Indices in this package's parsing code count these tokens.
type Structure struct {
	file   string
	Text   string
	lines  []Position // where each line of the text comes from; nil: from the file's line of this number
	All    []Token    // every token
	Off    []bool     // of every token, whether no preprocessor keeps it
	Tokens []Token    // the significant ones
	Match  []int      // of each bracket, the index of its partner; -1 for other tokens
}

// newStructure tokenizes a text and matches its brackets. Code that no preprocessor keeps, by what
// the text decides, is left out; where a conditional's branches unbalance the brackets, only first branches count. The lines
// tell where those of the text come from, and are nil where that is the file itself.
func NewStructure(file, text string, lines []Position) (*Structure, error) {
	s := &Structure{file: file, Text: text, lines: lines, All: Tokenize(text)}
	off, later, err := s.conditionals(&conditions{})
	if err != nil {
		return nil, err
	}
	s.Off = slices.Clone(off)
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

// kept lists the tokens, those of comments and preprocessor lines too, that a preprocessor may keep.
func (s *Structure) Kept() []Token {
	var kept []Token
	for i, t := range s.All {
		if !s.Off[i] {
			kept = append(kept, t)
		}
	}
	return kept
}

// position is the place of a token.
func (s *Structure) Position(t Token) Position {
	if s.lines == nil {
		return Position{File: s.file, Offset: t.Offset, Line: t.Line, Column: t.Column}
	}
	at := s.lines[t.Line-1]
	at.Column, at.Offset = t.Column, at.Offset+t.Column-1
	return at
}

// origin is where a line of the text comes from.
func (s *Structure) origin(line int) Position {
	if s.lines == nil {
		return Position{File: s.file, Line: line}
	}
	return Position{File: s.lines[line-1].File, Line: s.lines[line-1].Line}
}

// at is the token at an index, and an empty one outside the text.
func (s *Structure) At(i int) Token {
	if i < 0 || i >= len(s.Tokens) {
		return Token{}
	}
	return s.Tokens[i]
}

// errorAt makes an error at the token of this index, or at the last one.
func (s *Structure) ErrorAt(i int, format string, args ...any) *Error {
	if len(s.Tokens) == 0 {
		return Errorf(Position{File: s.file, Line: 1, Column: 1}, format, args...)
	}
	return Errorf(s.Position(s.Tokens[min(max(i, 0), len(s.Tokens)-1)]), format, args...)
}

// source is the text from one token to another, both included.
func (s *Structure) source(first, last int) string {
	if first > last {
		return ""
	}
	return s.Text[s.Tokens[first].Offset:s.Tokens[last].End()]
}

// join is the tokens from first to last with single spaces between words.
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

// collect takes the significant tokens, those outside directives and not marked as off.
func (s *Structure) collect(off []bool) {
	s.Tokens = make([]Token, 0, len(s.All))
	for i, t := range s.All {
		if t.Kind != Comment && t.Directive == 0 && !off[i] {
			s.Tokens = append(s.Tokens, t)
		}
	}
}

// conditionals marks the tokens that no preprocessor keeps, and those in second and later branches of
// conditionals that are not decided. Without conditions only plain truth values decide.
func (s *Structure) conditionals(known *conditions) (off, later []bool, err error) {
	type branch struct {
		off, later bool
		taken      bool // this branch or an earlier one is certainly taken
		open       bool // an earlier branch may be taken
		certain    bool // this branch is taken wherever the conditional is read
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

// beginsDirective reports whether token i of all is the '#' of a preprocessor line.
func (s *Structure) BeginsDirective(i int) bool {
	t := s.All[i]
	return t.Is("#") && t.Directive != 0 && (i == 0 || s.All[i-1].Directive != t.Directive)
}

// directiveEnd is the index behind the tokens of the directive that token i of all belongs to.
func (s *Structure) DirectiveEnd(i int) int {
	number := s.All[i].Directive
	for i < len(s.All) && s.All[i].Directive == number {
		i++
	}
	return i
}

// directive returns the name and the further tokens of the directive whose '#' is token i of all.
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

// matchBrackets pairs (), [] and {}.
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

// isAttribute reports whether "[[ … ]]" begins at i.
func (s *Structure) IsAttribute(i int) bool {
	return s.At(i).Is("[") && s.At(i+1).Is("[") && s.Match[i] == s.Match[i+1]+1
}

// maxAngles bounds the tokens that skipAngles looks at, so that a text full of '<' costs
// no quadratic time.
const maxAngles = 512

// skipAngles returns the index behind the template arguments whose '<' is at i, or i if
// there is no '>' to it before end.
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

// split cuts the tokens of [first, end) at the commas outside all brackets. Template
// arguments count as brackets.
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
