// Package statusline rewrites one line of a terminal.
package statusline

import (
	"fmt"
	"io"
	"os"
)

// A Line is a line that is written again and again. It is for use by one goroutine at a time.
type Line struct {
	w        io.Writer
	terminal bool
	width    int // of the last text
}

// New returns a line of w.
func New(w io.Writer) *Line {
	l := &Line{w: w}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		l.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return l
}

// Terminal tells whether the line is on a terminal.
func (l *Line) Terminal() bool { return l.terminal }

// Write replaces the line's text. If it is not on a terminal, each text is a line of its own. On a terminal the
// cursor returns to the beginning, so other output replaces the line.
func (l *Line) Write(text string) {
	if !l.terminal {
		fmt.Fprintln(l.w, text)
		return
	}
	fmt.Fprintf(l.w, "%-*s\r", l.width, text)
	l.width = len(text)
}

// End removes the line from a terminal.
func (l *Line) End() {
	if l.terminal && l.width > 0 {
		l.Write("")
		l.width = 0
	}
}
