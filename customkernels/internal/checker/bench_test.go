package checker

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/executor"
)

// BenchmarkRMSNormLike compares a schedule under the checker with the host executor, each on one thread, for the
// gradients of RMSNorm.
func BenchmarkRMSNormLike(b *testing.B) {
	text, err := os.ReadFile("../host/testdata/rms_norm_like.cpp")
	require.NoError(b, err)
	source := strings.NewReplacer("TYPE", "float", "READS", "4").Replace(string(text))
	const rows, width, groups = 256, 1024, 64
	floats := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(i%7) - 3
		}
		return v
	}
	x, w, g := floats(rows*width), floats(width), floats(rows*width)
	dims := []int32{width, rows / groups}
	dx, dw := make([]float32, rows*width), make([]float32, groups*width)
	grid, threadgroup := [3]int{32 * groups, 1, 1}, [3]int{32, 1, 1}

	b.Run("fast", func(b *testing.B) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		l, err := executor.Compile(b.Context(), source)
		require.NoError(b, err)
		buffer := func(v []float32) executor.Buffer {
			return executor.Buffer{Data: unsafe.Pointer(&v[0]), Shape: []int{len(v)}}
		}
		in := []executor.Buffer{buffer(x), buffer(w), buffer(g), {Data: unsafe.Pointer(&dims[0]), Shape: []int{2}}}
		for b.Loop() {
			require.NoError(b, l.Run(grid, threadgroup, make([]executor.Metadata, 4), in,
				[]executor.Buffer{buffer(dx), buffer(dw)}))
		}
	})
	b.Run("checked", func(b *testing.B) {
		p, err := Build(b.Context(), source)
		require.NoError(b, err)
		input := func(v []float32) Buffer {
			data := unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v))
			return Buffer{Data: data, Size: len(data), Cell: 4, Element: 4}
		}
		d := unsafe.Slice((*byte)(unsafe.Pointer(&dims[0])), 8)
		l := Launch{
			Grid: grid, Threadgroup: threadgroup, Schedules: 3, Timeout: time.Minute,
			Buffers: []Buffer{
				input(x), input(w), input(g),
				{Data: d, Size: 8, Cell: 4, Element: 4},
				{Size: 4 * len(dx), Cell: 4, Element: 4, Writable: true},
				{Size: 4 * len(dw), Cell: 4, Element: 4, Writable: true},
			},
		}
		var total time.Duration
		n := 0
		for b.Loop() {
			r, err := p.Run(b.Context(), l)
			require.NoError(b, err)
			require.Empty(b, r.Findings)
			require.Nil(b, r.Difference)
			total += r.Duration
			n++
		}
		b.ReportMetric(float64(total.Nanoseconds())/float64(n*l.Schedules), "ns/schedule")
	})
}

// BenchmarkBuild measures the build of a shader that is not in the cache, after the first one.
func BenchmarkBuild(b *testing.B) {
	b.Setenv("MLXGRAD_CACHE", b.TempDir())
	n := 0
	build := func() {
		n++
		_, err := Build(b.Context(), body(fmt.Sprintf("y[i] = x[i] + %d;", n)))
		require.NoError(b, err)
	}
	build()
	for b.Loop() {
		build()
	}
}
