package msl

import (
	"slices"
	"strings"
)

// prefix begins every name that this package adds to a text.
const Prefix = "mlxg_"

// edits is a set of replacements of pieces of a text.
type Edits struct {
	Text string
	list []edit
}

type edit struct {
	span
	with string
}

// replace puts words in the place of a piece of the text. Lines keep their numbers, and columns
// too where the words are not longer than the piece: blanks and newlines fill up.
func (e *Edits) Replace(start, end int, with string) {
	old := e.Text[start:end]
	var b strings.Builder
	b.WriteString(with)
	if lines := strings.Count(old, "\n") - strings.Count(with, "\n"); lines > 0 {
		b.WriteString(strings.Repeat("\n", lines))
		old = old[strings.LastIndexByte(old, '\n')+1:]
		with = ""
	}
	if n := len(old) - len(with); n > 0 {
		b.WriteString(strings.Repeat(" ", n))
	}
	e.list = append(e.list, edit{span{start, end}, b.String()})
}

// insert puts words before an offset.
func (e *Edits) Insert(at int, text string) { e.list = append(e.list, edit{span{at, at}, text}) }

// blank removes a piece of the text but for its newlines.
func (e *Edits) Blank(start, end int) { e.Replace(start, end, "") }

// apply is the text with the replacements done. Of two that overlap the one that begins first
// and is longest counts.
func (e *Edits) Apply() string {
	list := slices.Clone(e.list)
	slices.SortStableFunc(list, func(a, b edit) int {
		switch {
		case a.Start != b.Start:
			return a.Start - b.Start
		case a.Start == a.End || b.Start == b.End: // an insertion comes first
			return a.End - b.End
		default:
			return b.End - a.End
		}
	})
	var b strings.Builder
	at := 0
	for _, r := range list {
		if r.Start < at {
			continue
		}
		b.WriteString(e.Text[at:r.Start])
		b.WriteString(r.with)
		at = r.End
	}
	b.WriteString(e.Text[at:])
	return b.String()
}
