package main

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/statusline"
)

// parityProgress shows the progress of a comparison.
type parityProgress struct {
	status *statusline.Line

	done, kernels int
	rows, allRows int
	failed        int
}

// compiled records that done of all kernels are compiled.
func (p *parityProgress) compiled(done, all int) {
	p.done, p.kernels = done, all
	p.status.Set("%s", p)
}

// judged counts rows and their failures.
func (p *parityProgress) judged(rows []report.Row) {
	p.rows += len(rows)
	for _, row := range rows {
		if !row.Pass {
			p.failed++
		}
	}
	p.status.Set("%s", p)
}

func (p *parityProgress) String() string {
	line := fmt.Sprintf("%d of %d rows judged, %d failed", p.rows, p.allRows, p.failed)
	if p.kernels > 0 { // 0 on a GPU, where MLX compiles kernels at their first launch
		line = fmt.Sprintf("%d of %d kernels compiled, ", p.done, p.kernels) + line
	}
	return line
}
