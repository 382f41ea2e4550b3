//go:build mlxheaders

package overhead_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/internal/overhead"
)

type arrays = []*mlxc.Array

// A contest is one task in Go, in C over mlx-c and in Python.
type contest struct {
	name   string
	turns  int                           // loop iterations per measurement of some milliseconds
	goes   func(b *testing.B, turns int) // through package mlxc
	c      func(turns int) error         // nil if C has no counterpart
	python string                        // the loop's name in loops.py
}

const chainOps = 1000

func contests() []contest {
	x, w := mlxc.Ones(mlxc.Float32, 8, 64), mlxc.Ones(mlxc.Float32, 64)
	a, b := mlxc.Ones(mlxc.Float32, 8), mlxc.Ones(mlxc.Float32, 8)
	step := mlxc.ValueAndGrad(func(args arrays) arrays {
		return arrays{mlxc.RMSNorm(args[0], args[1], 1e-5).Sum()}
	}, 0, 1)
	inScope := func(n int) {
		mlxc.WithScope(func() {
			for range n {
				a.Add(b)
			}
		})
	}
	chainC := func(n int) error { return overhead.Chain(n, chainOps) }
	stepOf := func(eval bool) func(*testing.B, int) {
		return func(tb *testing.B, n int) {
			for range n {
				mlxc.WithScope(func() {
					values, grads, err := step(arrays{x, w})
					if err == nil && eval {
						err = mlxc.Eval(append(values, grads...)...)
					}
					if err != nil {
						tb.Fatal(err)
					}
				})
			}
		}
	}
	// This contest is last because it fragments the memory of C's allocator, which Go and C share.
	return []contest{
		{"add/scope", 10_000, func(_ *testing.B, n int) {
			for range n / 1000 {
				inScope(1000)
			}
		}, overhead.Add, "add"},
		{"add/free", 10_000, func(_ *testing.B, n int) {
			for range n {
				a.Add(b).Free()
			}
		}, overhead.Add, "add"},
		{"value_and_grad/build", 200, stepOf(false), func(n int) error { return overhead.Step(n, false) }, "build"},
		{"value_and_grad/eval", 100, stepOf(true), func(n int) error { return overhead.Step(n, true) }, "step"},
		{"chain/scope", 4, func(tb *testing.B, n int) {
			for range n {
				mlxc.WithScope(func() {
					y := a
					for range chainOps {
						y = y.Add(a)
					}
					if err := mlxc.Eval(y); err != nil {
						tb.Fatal(err)
					}
				})
			}
		}, chainC, "chain"},
		{"chain/free", 4, func(tb *testing.B, n int) {
			for range n {
				y := a.Add(a)
				for range chainOps - 1 {
					next := y.Add(a)
					y.Free()
					y = next
				}
				if err := mlxc.Eval(y); err != nil {
					tb.Fatal(err)
				}
				y.Free()
			}
		}, chainC, "chain"},
		{"add/net", 100_000, func(_ *testing.B, n int) {
			for range n {
				a.Add(b)
			}
			runtime.GC() // the cleanup of unreachable arrays is part of the cost
		}, overhead.Add, "add"},
		// Contention: four goroutines build on the same two arrays.
		{"add/goroutines", 100_000, func(_ *testing.B, n int) {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range n / 4000 {
						inScope(1000)
					}
				})
			}
			wg.Wait()
		}, overhead.Add, "add"},
	}
}

// Each contest alternates between Go, C and Python and rotates the order. It reports the medians of the
// times, Go's allocations, and the ratios of Go's time to the others'. It does not report the minimum, because the time
// that the threads of an evaluation wait for each other varies by half.
func BenchmarkOverhead(b *testing.B) {
	require.NoError(b, mlxc.SetDefaultDevice(mlxc.CPU))
	py := startPython(b)
	for _, c := range contests() {
		b.Run(c.name, func(b *testing.B) { c.run(b, py) })
	}
}

func (c contest) run(b *testing.B, py *python) {
	// While Python runs, the goroutine could move to another thread, for which C's allocator uses other memory.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var inGo, inC, inPython []time.Duration
	timed := func(times *[]time.Duration, f func()) {
		start := time.Now()
		f()
		*times = append(*times, time.Since(start))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.goes(b, c.turns)
	runtime.ReadMemStats(&after)
	sides := []func(){
		func() { timed(&inGo, func() { c.goes(b, c.turns) }) },
		func() { timed(&inC, func() { require.NoError(b, c.c(c.turns)) }) },
	}
	if py != nil {
		sides = append(sides, func() { inPython = append(inPython, py.run(b, c.python, c.turns)) })
	}
	// Rotate the order: the first run of a round has the cold caches that Python's process left.
	for first := 0; b.Loop(); first++ {
		for i := range sides {
			sides[(first+i)%len(sides)]()
		}
	}
	median := func(times []time.Duration) float64 {
		slices.Sort(times)
		return float64(times[len(times)/2]) / float64(c.turns)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(inGo), "ns/Go")
	b.ReportMetric(median(inC), "ns/C")
	b.ReportMetric(median(inGo)/median(inC), "Go÷C")
	if py != nil {
		b.ReportMetric(median(inPython), "ns/Python")
		b.ReportMetric(median(inGo)/median(inPython), "Go÷Python")
	}
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(c.turns), "allocs/Go")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(c.turns), "B/Go")
}

// python is a process that runs the loops of loops.py.
type python struct {
	in  io.Writer
	out *bufio.Reader
}

// startPython starts the process. Without Python's MLX of the same version it logs the reason and returns nil.
func startPython(b *testing.B) *python {
	cmd := exec.Command("python3", "testdata/loops.py")
	cmd.Stderr = io.Discard
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "without Python:", err)
		return nil
	}
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	p := &python{in, bufio.NewReader(out)}
	version, err := p.out.ReadString('\n')
	switch version = strings.TrimSpace(version); {
	case err != nil:
		fmt.Fprintln(os.Stderr, `without Python: python3 -c "import mlx.core" fails`)
		return nil
	case version != mlxc.Version():
		fmt.Fprintf(os.Stderr, "without Python: its MLX is %s, ours %s\n", version, mlxc.Version())
		return nil
	}
	return p
}

// run times turns of a loop.
func (p *python) run(b *testing.B, loop string, turns int) time.Duration {
	_, err := fmt.Fprintln(p.in, loop, turns)
	require.NoError(b, err)
	var ns int64
	_, err = fmt.Fscanln(p.out, &ns)
	require.NoError(b, err)
	return time.Duration(ns)
}
