package ranks

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// prefixed writes whole lines with the rank as prefix. Only one goroutine at a time may use it.
type prefixed struct {
	prefix []byte
	out    io.Writer
	shared *sync.Mutex // of the writers of all ranks
	part   []byte      // of the last line
}

func newPrefixed(rank int, out io.Writer, shared *sync.Mutex) *prefixed {
	return &prefixed{prefix: fmt.Appendf(nil, "[%d] ", rank), out: out, shared: shared}
}

// Write never fails: a rank does not end because its output is not read.
func (p *prefixed) Write(text []byte) (int, error) {
	var lines []byte
	for line := range bytes.Lines(text) {
		p.part = append(p.part, line...)
		if line[len(line)-1] == '\n' {
			lines = append(append(lines, p.prefix...), p.part...)
			p.part = p.part[:0]
		}
	}
	if len(lines) > 0 {
		p.shared.Lock()
		defer p.shared.Unlock()
		_, _ = p.out.Write(lines)
	}
	return len(text), nil
}

// flush writes a last line without an end.
func (p *prefixed) flush() {
	if len(p.part) > 0 {
		_, _ = p.Write([]byte{'\n'})
	}
}
