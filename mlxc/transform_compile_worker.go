package mlxc

import (
	"runtime"
	"sync"
)

// compiler is the thread on which compiled functions run: a goroutine locked to it. It starts at first use, and again
// if a compiled function ended it.
var compiler worker

type worker struct {
	mu   sync.Mutex
	jobs chan job
}

type job struct {
	stream streamHandle
	f      func()
	done   chan bool
}

// do runs f on the worker's thread, with stream as the current stream and under the graph lock. It returns false if f
// ended the goroutine.
func (w *worker) do(stream streamHandle, f func()) bool {
	j := job{stream: stream, f: f, done: make(chan bool, 1)}
	w.mu.Lock()
	if w.jobs == nil {
		w.jobs = make(chan job)
		go w.run(w.jobs)
	}
	jobs := w.jobs
	w.mu.Unlock()
	jobs <- j
	return <-j.done
}

func (w *worker) run(jobs chan job) {
	runtime.LockOSThread()
	for j := range jobs {
		if !w.runJob(j, jobs) {
			return
		}
	}
}

func (w *worker) runJob(j job, jobs chan job) (alive bool) {
	defer func() {
		if !alive {
			// Goexit: this goroutine and its thread, whose tracing state is broken, end here. A new goroutine takes
			// over the queue.
			go w.run(jobs)
		}
		j.done <- alive
	}()
	// Set the stream before locked does: MLX's cache depends on the thread's default stream, which locked sets.
	withStream(j.stream, func() { locked(j.f) })
	return true
}
