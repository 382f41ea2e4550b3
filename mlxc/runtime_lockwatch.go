package mlxc

import (
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

// lockPatience is how long, in nanoseconds, goroutines may wait for the graph lock, held by a Go function that MLX
// calls, before a warning is logged. Tests shorten it.
var lockPatience atomic.Int64

func init() { lockPatience.Store(int64(5 * time.Second)) }

// lockWatch logs the goroutines that wait for the graph lock while a Go function called by MLX holds it. The function
// may itself wait for them.
var lockWatch watch

// A watch has a timer that ticks while functions run and stops at the first tick at which none runs. To start a timer
// wakes a thread of the scheduler, which takes longer than a short function, so the end of a function does not stop it.
type watch struct {
	open    atomic.Int32  // number of Go functions called by MLX that run, nested in each other
	calls   atomic.Uint64 // number of outermost functions so far
	ticking atomic.Bool
	// Numbers of outermost functions. Only tick uses them.
	seen   uint64 // goroutines were waiting at the last tick
	logged uint64
}

func (w *watch) enter() {
	if w.open.Add(1) > 1 {
		return
	}
	w.calls.Add(1)
	if !w.ticking.Load() && w.ticking.CompareAndSwap(false, true) {
		time.AfterFunc(time.Duration(lockPatience.Load()), w.tick)
	}
}

func (w *watch) leave() { w.open.Add(-1) }

// tick logs once per outermost function, at the second tick that finds waiting goroutines. The function holds the lock
// all the time, so these goroutines have waited since the first tick.
func (w *watch) tick() {
	if w.open.Load() == 0 {
		w.ticking.Store(false)
		if w.open.Load() == 0 || !w.ticking.CompareAndSwap(false, true) {
			return // no function runs, or it has started the timer
		}
	}
	call := w.calls.Load()
	switch {
	case waitingForLock() == 0:
		w.seen = 0
	case w.seen != call:
		w.seen = call
	case w.logged != call:
		if function, waiting := lockUsers(); len(waiting) > 0 && w.calls.Load() == call {
			w.logged = call
			slog.Warn("mlxc: a function that MLX calls blocks goroutines; if it waits for them, this is a deadlock",
				"function", function, "waiting", strings.Join(waiting, "; "))
		}
	}
	time.AfterFunc(time.Duration(lockPatience.Load()), w.tick)
}

// inC matches the stack of a goroutine that is inside a C function of this package.
var inC = regexp.MustCompile(`^(runtime\.cgocall\(.*\n.*\n)?\S+/mlxc\._Cfunc_`)

// lockUsers searches the stacks of all goroutines for the function that holds the graph lock and for the goroutines
// that wait for it. It leaves out goroutines of this package that destroy unused objects: no caller waits for them.
func lockUsers() (function string, waiting []string) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	function = "unknown"
	for g := range strings.SplitSeq(string(stacks), "\n\n") {
		head, frames, _ := strings.Cut(g, "\n")
		name, _, _ := strings.Cut(head, " [")
		switch {
		case strings.Contains(frames, "/mlxc.guarded("):
			function = name + ": " + callerIn(frames, false)
		case inC.MatchString(frames) || strings.Contains(frames, "/mlxc.(*worker).do("):
			if caller := callerIn(frames, true); caller != "" {
				waiting = append(waiting, name+": "+caller)
			}
		}
	}
	return function, waiting
}

// callerIn returns the innermost function outside this package and the packages runtime, sync and time, with its line,
// or "" if there is none. With operation set, it also returns the function of this package that was called.
func callerIn(frames string, operation bool) string {
	lines := strings.Split(frames, "\n")
	called := ""
	for i := 0; i+1 < len(lines); i += 2 {
		f := lines[i]
		if at := strings.LastIndex(f, "("); at > 0 {
			f = f[:at]
		}
		f = strings.TrimPrefix(f, "created by ")
		switch _, own, ok := strings.Cut(f, "mlxgrad/mlxc."); {
		case ok:
			called = own
		case !strings.HasPrefix(f, "runtime.") && !strings.HasPrefix(f, "sync.") && !strings.HasPrefix(f, "time."):
			file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
			if operation {
				return called + ", called at " + file
			}
			return f + " at " + file
		}
	}
	return ""
}
