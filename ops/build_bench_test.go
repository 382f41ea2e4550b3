package ops

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A buildBench is a function whose VJP is built, but not computed.
type buildBench struct {
	name       string
	f          mlxc.Func
	primals    arrays
	cotangents arrays
}

// BenchmarkBuild measures the time that it takes to build the graph of each operation's VJP for a small case.
func BenchmarkBuild(b *testing.B) {
	for _, c := range collect(func(d descriptor) func() []buildBench { return d.builds }) {
		b.Run(c.name, func(b *testing.B) {
			build := func() {
				if _, _, err := mlxc.VJP(c.f, c.primals, c.cotangents); err != nil {
					b.Fatal(err)
				}
			}
			mlxc.WithScope(build) // compiles the kernels on a CPU
			b.ReportAllocs()
			for b.Loop() {
				mlxc.WithScope(build)
			}
		})
	}
}
