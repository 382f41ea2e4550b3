package msl

import (
	"slices"
	"strings"
)

// edits is a set of replacements of pieces of a text.
type edits struct {
	text string
	list []edit
}

type edit struct {
	span
	with string
}

// replace puts words in the place of a piece of the text. Lines keep their numbers, and columns
// too where the words are not longer than the piece: blanks and newlines fill up.
func (e *edits) replace(start, end int, with string) {
	old := e.text[start:end]
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

// blank removes a piece of the text but for its newlines.
func (e *edits) blank(start, end int) { e.replace(start, end, "") }

// apply is the text with the replacements done. Of two that overlap the one that begins first
// and is longest counts.
func (e *edits) apply() string {
	list := slices.Clone(e.list)
	slices.SortStableFunc(list, func(a, b edit) int {
		switch {
		case a.start != b.start:
			return a.start - b.start
		case a.start == a.end || b.start == b.end: // an insertion comes first
			return a.end - b.end
		default:
			return b.end - a.end
		}
	})
	var b strings.Builder
	at := 0
	for _, r := range list {
		if r.start < at {
			continue
		}
		b.WriteString(e.text[at:r.start])
		b.WriteString(r.with)
		at = r.end
	}
	b.WriteString(e.text[at:])
	return b.String()
}
