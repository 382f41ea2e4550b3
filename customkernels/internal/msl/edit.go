package msl

import (
	"slices"
	"strings"
)

// Prefix begins every name that a translation adds to a text.
const Prefix = "mlxg_"

// Edits is a list of replacements in Text.
type Edits struct {
	Text string
	list []edit
}

type edit struct {
	span
	with string
}

// Replace replaces the bytes [start, end). Newlines and blanks fill up a shorter replacement, so that lines keep
// their numbers and the rest of the line keeps its columns.
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

// Insert inserts text at an offset.
func (e *Edits) Insert(at int, text string) { e.list = append(e.list, edit{span{at, at}, text}) }

// Blank replaces the bytes [start, end) by blanks and keeps the newlines.
func (e *Edits) Blank(start, end int) { e.Replace(start, end, "") }

// Apply returns the edited text. Of two overlapping edits the one that begins first applies, and of two that begin
// together the longer one. Insertions come before a replacement at the same offset.
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
