package setup

import (
	"fmt"
	"io"
	"time"

	"github.com/mlxgrad/mlxgrad/internal/statusline"
)

// A printer prints one line per step and, on a terminal, the progress of the step.
type printer struct {
	w     io.Writer
	verb  string
	start time.Time
	line  *statusline.Line
	last  string
}

func newPrinter(w io.Writer, verb string) *printer {
	return &printer{w: w, verb: verb, start: time.Now(), line: statusline.New(w)}
}

func (p *printer) print(step Progress) {
	if step.Message != p.last {
		p.last = step.Message
		p.line.Interrupt(func() {
			fmt.Fprintf(p.w, "mlxgrad %s: [%3.0fs] %s\n", p.verb, time.Since(p.start).Seconds(), step.Message)
		})
	}
	if step.Total > 0 {
		p.line.Set("%d %% of: %s", 100*step.Done/step.Total, step.Message)
	} else {
		p.line.Set("%s", step.Message)
	}
}
