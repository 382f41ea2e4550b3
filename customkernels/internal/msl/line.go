package msl

import "sort"

// Line is the origin of a line of a text: the position in a file at which the line begins.
type Line struct {
	Position
	// Columns holds the columns that differ from the text's, in ascending order. It is nil if no column differs.
	Columns []Column
}

// Column maps the columns of a text from At on to the column From of the line in the file.
type Column struct{ At, From int }

// at returns the origin of a column of the text.
func (l Line) at(column int) Position {
	if i := sort.Search(len(l.Columns), func(i int) bool { return l.Columns[i].At > column }); i > 0 {
		column = l.Columns[i-1].From
	}
	p := l.Position
	p.Column, p.Offset = column, p.Offset+column-1
	return p
}
