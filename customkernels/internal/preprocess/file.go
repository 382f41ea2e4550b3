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

func newFile(name, text string) file {
	f := file{name: name, structure: msl.NewTokens(name, text), starts: []int{0, 0}}
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

// position returns a position in the file. A line that the file does not have counts as the last line.
func (f file) position(line, column int) msl.Position {
	line = min(max(line, 1), len(f.starts)-1)
	return msl.Position{File: f.name, Line: line, Column: column, Offset: f.starts[line] + column - 1}
}

// line returns the origin of a line of the preprocessor's output. The tokens before the first macro and after the last
// one come from their own columns, and the tokens between from the first macro.
func (f file) line(number int, output string) msl.Line {
	l := msl.Line{Position: f.position(number, 1)}
	if number >= len(f.tokens) {
		return l
	}
	out, src := msl.Tokenize(output), f.tokens[number]
	same := func(a, b msl.Token) bool { return a.Text == b.Text }
	before := 0
	for before < min(len(out), len(src)) && same(out[before], src[before]) {
		before++
	}
	after := 0
	for after < min(len(out), len(src))-before && same(out[len(out)-1-after], src[len(src)-1-after]) {
		after++
	}
	differs := false
	for i, t := range out {
		from := t.Column
		switch {
		case len(src) == 0: // a directive inserted by the preprocessor
		case i < before:
			from = src[i].Column
		case i >= len(out)-after:
			from = src[len(src)-len(out)+i].Column
		default:
			from = src[min(before, len(src)-1)].Column
		}
		differs = differs || from != t.Column
		l.Columns = append(l.Columns, msl.Column{At: t.Column, From: from})
	}
	if !differs {
		l.Columns = nil
	}
	return l
}
