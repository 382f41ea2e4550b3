package toolchain

import (
	"log/slog"
	"sync"
	"time"
)

// compiling logs a line if this process compiles kernels for longer than a second.
var compiling = notice{after: time.Second}

// A notice logs one line, once, when kernels have been compiled for the duration after, all
// compilations together.
type notice struct {
	after time.Duration

	mu      sync.Mutex
	running int           // compilations
	done    int           // compilations
	since   time.Time     // when the first of the running ones began
	spent   time.Duration // in times that have ended
	timer   *time.Timer   // nil until the first compilation
	told    bool
}

// begin tells that a compilation begins, end that it has ended.
func (n *notice) begin(c *compiler) (end func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running++; n.running == 1 && !n.told {
		n.since = time.Now()
		n.timer = time.AfterFunc(n.after-n.spent, func() { n.tell(c) })
	}
	return n.end
}

func (n *notice) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.done++
	if n.running--; n.running == 0 {
		n.timer.Stop()
		n.spent += time.Since(n.since)
	}
}

func (n *notice) tell(c *compiler) {
	n.mu.Lock()
	told, done := n.told, n.done
	n.told = true
	n.mu.Unlock()
	if !told {
		slog.Info("customkernels: compiling kernels, which the cache keeps for later runs", "compiler", c.String(), "done", done)
	}
}
