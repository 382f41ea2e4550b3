package toolchain

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// compiling logs a line once this process has compiled kernels for a second in total.
var compiling = notice{after: time.Second}

// Compiling marks the start of a compilation. The caller calls end when it has finished. The log names the compiler.
func Compiling(compiler fmt.Stringer) (end func()) { return compiling.begin(compiler) }

// A notice logs one line once compilations have taken the duration `after` in total.
type notice struct {
	after time.Duration

	mu      sync.Mutex
	running int           // compilations that run
	done    int           // compilations that have ended
	since   time.Time     // start of the current period with compilations
	spent   time.Duration // duration of earlier periods
	timer   *time.Timer   // nil until the first compilation
	told    bool          // the line was logged
}

// begin marks the start of a compilation. The caller calls end when it has finished.
func (n *notice) begin(c fmt.Stringer) (end func()) {
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

func (n *notice) tell(c fmt.Stringer) {
	n.mu.Lock()
	told, done := n.told, n.done
	n.told = true
	n.mu.Unlock()
	if !told {
		slog.Info("customkernels: compiling kernels, which the cache keeps for later runs", "compiler",
			c.String(), "done", done)
	}
}
