package ops

import (
	"slices"
	"testing"
	"time"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A buildBench is a function whose VJP is built, but not computed.
type buildBench struct {
	name       string
	f          mlxc.Func
	primals    arrays
	cotangents arrays
}

func (c buildBench) build(b *testing.B) {
	if _, _, err := mlxc.VJP(c.f, c.primals, c.cotangents); err != nil {
		b.Fatal(err)
	}
}

func forEachBuild(b *testing.B, f func(b *testing.B, c buildBench)) {
	for _, c := range collect(func(d descriptor) func() []buildBench { return d.builds }) {
		b.Run(c.name, func(b *testing.B) {
			mlxc.WithScope(func() { c.build(b) }) // compiles the kernels on a CPU
			f(b, c)
		})
	}
}

// BenchmarkBuild measures the time that it takes to build the graph of each operation's VJP for a small case, and to
// free it.
func BenchmarkBuild(b *testing.B) {
	forEachBuild(b, func(b *testing.B, c buildBench) {
		b.ReportAllocs()
		for b.Loop() {
			mlxc.WithScope(func() { c.build(b) })
		}
	})
}

// BenchmarkBuildCold measures the build of several graphs, which are all kept, after other work has replaced the
// content of the caches. This is the state of a program that waits for a device between its steps, and build_us of
// mlxgrad bench is such a time. It reports the medians of the first graph and of the mean of all.
func BenchmarkBuildCold(b *testing.B) {
	const copies = 8
	work := make([]byte, 64<<20) // more than the caches of most processors
	forEachBuild(b, func(b *testing.B, c buildBench) {
		var first, mean []time.Duration
		for b.Loop() {
			for i := range work {
				work[i]++
			}
			mlxc.WithScope(func() {
				start := time.Now()
				c.build(b)
				first = append(first, time.Since(start))
				for range copies - 1 {
					c.build(b)
				}
				mean = append(mean, time.Since(start)/copies)
			})
		}
		slices.Sort(first)
		slices.Sort(mean)
		b.ReportMetric(0, "ns/op") // hide the time of the other work
		b.ReportMetric(float64(first[len(first)/2])/1e3, "first-µs")
		b.ReportMetric(float64(mean[len(mean)/2])/1e3, "mean-µs")
	})
}
