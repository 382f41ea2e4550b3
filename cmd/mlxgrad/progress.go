package main

import (
	"fmt"
	"io"
	"time"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/statusline"
)

// parityProgress shows the progress of a comparison. On a terminal it rewrites one line. Elsewhere it writes a line at
// the start and then every half minute.
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

// compiled records the number of compiled kernels and of all.
func (p *parityProgress) compiled(done, all int) {
	p.done, p.kernels = done, all
	p.tell()
}

// judged records rows.
func (p *parityProgress) judged(rows []report.Row) {
	p.rows += len(rows)
	for _, row := range rows {
		if !row.Pass {
			p.failed++
		}
	}
	p.tell()
}

// tell writes a line if one is due.
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
	if p.kernels > 0 { // 0 on a GPU, where MLX compiles kernels at their first launch
		line = fmt.Sprintf("%d of %d kernels compiled, ", p.done, p.kernels) + line
	}
	p.line.Write(line)
}

// end removes the line from a terminal.
func (p *parityProgress) end() { p.line.End() }
