package main

import (
	"fmt"
	"io"
	"time"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/statusline"
)

// parityProgress tells how far a comparison is: on a terminal in one line, which it rewrites, elsewhere in a line at the
// beginning and then every half minute.
type parityProgress struct {
	line *statusline.Line
	last time.Time // when it was written

	done, kernels int
	rows, allRows int
	failed        int
}

const (
	terminalInterval = 100 * time.Millisecond
	logInterval      = 30 * time.Second
)

func newParityProgress(w io.Writer, rows int) *parityProgress {
	return &parityProgress{line: statusline.New(w), allRows: rows}
}

// compiled notes how many kernels are compiled, of all.
func (p *parityProgress) compiled(done, all int) {
	p.done, p.kernels = done, all
	p.tell()
}

// judged notes rows.
func (p *parityProgress) judged(rows []report.Row) {
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
	if p.line.Terminal() {
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
	p.line.Write(line)
}

// end removes the line from a terminal.
func (p *parityProgress) end() { p.line.End() }
