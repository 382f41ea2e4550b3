package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mlxgrad/mlxgrad/compare/report"
)

// parityProgress tells how far a comparison is: on a terminal in one line, which it rewrites, elsewhere in a line at the
// beginning and then every half minute.
type parityProgress struct {
	w        io.Writer
	terminal bool
	last     time.Time // when a line was written
	width    int       // of that line

	done, kernels int
	rows, allRows int
	failed        int
}

const (
	terminalInterval = 100 * time.Millisecond
	logInterval      = 30 * time.Second
)

func newParityProgress(w io.Writer, rows int) *parityProgress {
	p := &parityProgress{w: w, allRows: rows}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// compiled notes how many kernels are compiled, of all.
func (p *parityProgress) compiled(done, all int) {
	p.done, p.kernels = done, all
	p.tell()
}

// judged notes rows.
func (p *parityProgress) judged(rows []report.Case) {
	p.rows += len(rows)
	for _, row := range rows {
		if !row.Pass {
			p.failed++
		}
	}
	p.tell()
}

// tell writes a line if it is time for one.
func (p *parityProgress) tell() {
	interval := logInterval
	if p.terminal {
		interval = terminalInterval
	}
	if p.allRows == 0 || time.Since(p.last) < interval {
		return
	}
	p.last = time.Now()
	line := fmt.Sprintf("%d of %d rows judged, %d failed", p.rows, p.allRows, p.failed)
	if p.kernels > 0 { // On a GPU, MLX compiles kernels as it runs them.
		line = fmt.Sprintf("%d of %d kernels compiled, ", p.done, p.kernels) + line
	}
	p.write(line)
}

// write writes a line. On a terminal the cursor returns to its beginning, so other output replaces the line.
func (p *parityProgress) write(line string) {
	if !p.terminal {
		fmt.Fprintln(p.w, line)
		return
	}
	fmt.Fprintf(p.w, "%-*s\r", p.width, line)
	p.width = len(line)
}

// end removes the line from a terminal.
func (p *parityProgress) end() {
	if p.terminal {
		p.write("")
	}
}
