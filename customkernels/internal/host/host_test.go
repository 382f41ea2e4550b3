package host

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

func TestFirst(t *testing.T) {
	t.Log(CompilerInfo())
	l := compileFile(t, "copy.cpp")
	const n = 1003
	x, y := make([]float16.Float16, n), make([]float16.Float16, n)
	for i := range x {
		x[i] = float16.Fromfloat32(float32(i))
	}
	s := []float32{2}
	require.NoError(t, l.Run([3]int{n, 1, 1}, [3]int{128, 1, 1}, []Metadata{0, 0},
		[]Buffer{buf(x), buf(s)}, []Buffer{buf(y)}))
	for i := range y {
		require.Equal(t, float16.Fromfloat32(float16.Fromfloat32(float32(2*i)).Float32()+3), y[i], i)
	}

	l = compileFile(t, "row_sum.cpp")
	const rows, width = 37, 1000
	xb, out := make([]uint16, rows*width), make([]float32, rows)
	for i := range xb {
		xb[i] = uint16(0x3f80) // 1.0
	}
	for _, tg := range []int{32, 64, 100, 1024} {
		require.NoError(t, l.Run([3]int{rows * tg, 1, 1}, [3]int{tg, 1, 1}, []Metadata{0, 0},
			[]Buffer{buf(xb), buf([]int32{width})}, []Buffer{buf(out)}))
		for i := range out {
			require.Equal(t, float32(width), out[i])
		}
	}
}

func buf[T any](x []T) Buffer {
	return Buffer{Data: unsafe.Pointer(unsafe.SliceData(x)), Shape: []int{len(x)}}
}
