// Package statusline rewrites one line of a terminal.
package statusline

import (
	"fmt"
	"io"
	"os"
)

// A Line is a line of text that is replaced repeatedly. It must not be used by several goroutines at once.
type Line struct {
	w        io.Writer
	terminal bool
	width    int // of the last text
}

// New returns a line that is written to w.
func New(w io.Writer) *Line {
	l := &Line{w: w}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		l.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return l
}

// Terminal reports whether the line is on a terminal.
func (l *Line) Terminal() bool { return l.terminal }

// Write replaces the text of the line. On a terminal the cursor returns to the beginning, so other output overwrites
// the line. Elsewhere each text is a separate line.
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
