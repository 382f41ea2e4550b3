// Package statusline shows the progress of work in one line of a terminal.
package statusline

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
)

// Delay is the time until a line is shown. Shorter work shows nothing.
const Delay = 2 * time.Second

// interval is the time between two updates of the terminal.
const interval = 200 * time.Millisecond

// maxWidth is the largest width of the line. A longer line would wrap, and could not be replaced.
const maxWidth = 78

// A Line is a status line that is rewritten in place. It shows nothing if its writer is not a terminal. Its methods may
// be called by several goroutines.
type Line struct {
	w     io.Writer
	start time.Time
	stop  chan struct{} // nil unless w is a terminal

	mu    sync.Mutex
	text  string
	shown int // width of the text on the terminal
}

// New returns a line that is shown on w if w is a terminal. The caller must call End, which ends its goroutine.
func New(w io.Writer) *Line {
	l := &Line{w: w, start: time.Now()}
	if f, ok := w.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		l.stop = make(chan struct{})
		go l.run(l.stop)
	}
	return l
}

// run shows the text until the line ends.
func (l *Line) run(stop chan struct{}) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			if elapsed := now.Sub(l.start); elapsed >= Delay {
				l.show(elapsed)
			}
		}
	}
}

// Set replaces the text. The terminal shows it at the next update.
func (l *Line) Set(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = fmt.Sprintf(format, args...)
}

// show writes the text with the elapsed time.
func (l *Line) show(elapsed time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" {
		return
	}
	text := []rune(fmt.Sprintf("[%3.0f s] %s", elapsed.Seconds(), l.text))
	text = text[:min(len(text), maxWidth)]
	fmt.Fprintf(l.w, "\r%s%s", string(text), strings.Repeat(" ", max(0, l.shown-len(text))))
	l.shown = len(text)
}

// Interrupt removes the line from the terminal and calls print, which may write there. The line appears again with the
// next update. print must not call methods of the line, which is locked meanwhile.
func (l *Line) Interrupt(print func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove()
	print()
}

// End removes the line from the terminal for good. It may be called more than once.
func (l *Line) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = ""
	l.remove()
	if l.stop != nil {
		close(l.stop)
		l.stop = nil
	}
}

func (l *Line) remove() {
	if l.shown > 0 {
		fmt.Fprintf(l.w, "\r%s\r", strings.Repeat(" ", l.shown))
		l.shown = 0
	}
}
