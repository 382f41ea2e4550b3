package preprocess

import (
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// file is a shader file or a file that it includes.
type file struct {
	name      string
	structure *msl.Structure
	tokens    [][]msl.Token // by line, from 1, without comments
	starts    []int         // offset of each line, from 1
}

func newFile(name, text string, lines []msl.Line) file {
	f := file{name: name, structure: msl.NewTokens(name, text, lines), starts: []int{0, 0}}
	for i := range len(text) {
		if text[i] == '\n' {
			f.starts = append(f.starts, i+1)
		}
	}
	f.tokens = make([][]msl.Token, len(f.starts)+1)
	for _, t := range f.structure.All {
		if t.Kind != msl.Comment {
			f.tokens[t.Line] = append(f.tokens[t.Line], t)
		}
	}
	return f
}

// position returns the origin of a position in the file. A line that the file does not have counts as the last line.
func (f file) position(line, column int) msl.Position {
	line = min(max(line, 1), len(f.starts)-1)
	return f.structure.Position(msl.Token{Offset: f.starts[line] + column - 1, Line: line, Column: column})
}

// line returns the origin of a line of the preprocessor's output. A token of a macro's replacement comes from the
// macro's name, and any other token from its own column.
func (f file) line(number int, output string) msl.Line {
	l := msl.Line{Position: f.position(number, 1)}
	if number >= len(f.tokens) || len(f.tokens[number]) == 0 {
		return l // a directive that the preprocessor inserted
	}
	out, src := msl.Tokenize(output), f.tokens[number]
	differs := false
	for i, j := range align(out, src) {
		from := f.position(number, src[j].Column).Column
		l.Columns = append(l.Columns, msl.Column{At: out[i].Column, From: from})
		differs = differs || out[i].Column != from
	}
	if !differs {
		l.Columns = nil
	}
	return l
}

// align returns for each token of a preprocessed line the index of the token of the source line that it comes from.
func align(out, src []msl.Token) []int {
	from := make([]int, len(out))
	after := 0 // equal tokens at the end
	for after < min(len(out), len(src)) && out[len(out)-1-after].Text == src[len(src)-1-after].Text {
		after++
	}
	i, j := 0, 0
	for i < len(out)-after && j < len(src) {
		if out[i].Text == src[j].Text {
			from[i] = j
			i, j = i+1, j+1
			continue
		}
		next := j + 1 // token j is the name of a macro
		if next < len(src) && src[next].Is("(") {
			next = closing(src, next) + 1
		}
		end := resume(out[:len(out)-after], src, i, next)
		for ; i < end; i++ {
			from[i] = j
		}
		j = next
	}
	for ; i < len(out)-after; i++ {
		from[i] = len(src) - 1
	}
	for k := range after {
		from[len(out)-1-k] = len(src) - 1 - k
	}
	return from
}

// closing returns the index of the parenthesis that closes the one at i, or of the last token.
func closing(tokens []msl.Token, i int) int {
	depth := 0
	for ; i < len(tokens); i++ {
		if tokens[i].Is("(") {
			depth++
		} else if tokens[i].Is(")") {
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(tokens) - 1
}

// resume returns the index from i on of the token at which the line continues with token j of the source and the one
// after it, or the number of tokens.
func resume(out, src []msl.Token, i, j int) int {
	for ; j < len(src) && i < len(out); i++ {
		if out[i].Text == src[j].Text && (i+1 == len(out) || j+1 == len(src) || out[i+1].Text == src[j+1].Text) {
			return i
		}
	}
	return len(out)
}
