package executor

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The results are bitwise equal however the threadgroups are distributed over the workers.
func TestDeterminism(t *testing.T) {
	t.Parallel()
	l := compileFile(t, "rms_norm_like", "TYPE", "float", "READS", "4")
	const rows, width, groups = 96, 777 / 4 * 4, 24
	x, w, g := make([]float32, rows*width), make([]float32, width), make([]float32, rows*width)
	for i := range x {
		x[i], g[i] = float32(i%101)/7, float32(i%89)/11
	}
	for i := range w {
		w[i] = float32(i%13) / 3
	}
	dims := []int32{width, rows / groups}
	var first, firstW []float32
	for range 20 {
		dx, dw := make([]float32, rows*width), make([]float32, groups*width)
		run(t, l, [3]int{32 * groups, 1, 1}, [3]int{32, 1, 1}, []Buffer{buf(x), buf(w), buf(g), buf(dims)}, []Buffer{buf(dx), buf(dw)})
		if first == nil {
			first, firstW = dx, dw
		}
		require.True(t, slices.Equal(first, dx) && slices.Equal(firstW, dw))
	}
}

// Eight goroutines concurrently launch two kernels with changing sizes.
func TestConcurrentLaunches(t *testing.T) {
	t.Parallel()
	sums, copies := compileFile(t, "row_sum"), compileFile(t, "copy")
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for round := range 30 {
				rows, width, tg := 1+(worker*7+round)%50, 1+round*17%300, []int{32, 64, 1024, 100}[(worker+round)%4]
				x, y := make([]uint16, rows*width), make([]float32, rows)
				for i := range x {
					x[i] = 0x3f80 // one
				}
				err := sums.Run([3]int{rows * tg, 1, 1}, [3]int{tg, 1, 1}, make([]Metadata, 2),
					[]Buffer{buf(x), buf([]int32{int32(width)})}, []Buffer{buf(y)})
				if err != nil {
					t.Error(err)
					return
				}
				for _, v := range y {
					if v != float32(width) {
						t.Errorf("a row of %d ones sums to %v", width, v)
						return
					}
				}
				xh, yh := slices.Repeat([]uint16{0x3c00}, 1000), make([]uint16, 1000)
				if err := copies.Run([3]int{1000, 1, 1}, [3]int{tg, 1, 1}, make([]Metadata, 2),
					[]Buffer{buf(xh), buf([]float32{1})}, []Buffer{buf(yh)}); err != nil {
					t.Error(err)
					return
				}
				if yh[0] != 0x4400 || yh[999] != 0x4400 {
					t.Errorf("1·1+3 is %#x", yh[0])
					return
				}
				if round%10 == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
}
