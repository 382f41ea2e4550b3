package executor

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

// BenchmarkRMSNormLike measures the gradients of RMSNorm with one simdgroup for each row, a typical kernel. reads is
// the number of consecutive elements that a lane reads at a time.
func BenchmarkRMSNormLike(b *testing.B) {
	text, err := os.ReadFile("testdata/rms_norm_like.cpp")
	require.NoError(b, err)
	for _, dtype := range []string{"float", "float16_t", "bfloat16_t"} {
		size := 2
		if dtype == "float" {
			size = 4
		}
		for _, reads := range []int{1, 4, 32} {
			l, err := Compile(b.Context(), strings.NewReplacer("TYPE", dtype, "READS", fmt.Sprint(reads)).Replace(string(text)))
			require.NoError(b, err)
			for _, shape := range [][2]int{{1024, 4096}, {256, 1024}} {
				rows, width, groups := shape[0], shape[1], 64
				// Write all pages: the operating system maps untouched pages to one zero page, which stays in cache.
				fill := func(n int) Buffer {
					bytes := make([]byte, n*size)
					for i := range n {
						v := float32(i%7) - 3
						switch dtype {
						case "float":
							*(*float32)(unsafe.Pointer(&bytes[4*i])) = v
						case "float16_t":
							*(*float16.Float16)(unsafe.Pointer(&bytes[2*i])) = float16.Fromfloat32(v)
						default:
							*(*[2]byte)(unsafe.Pointer(&bytes[2*i])) = [2]byte((*[4]byte)(unsafe.Pointer(&v))[2:])
						}
					}
					return buf(bytes)
				}
				x, w, g, dx := fill(rows*width), fill(width), fill(rows*width), fill(rows*width)
				dw := make([]float32, groups*width)
				b.Run(fmt.Sprintf("%s/%dx%d/reads=%d", dtype, rows, width, reads), func(b *testing.B) {
					for b.Loop() {
						err := l.Run([3]int{32 * groups, 1, 1}, [3]int{32, 1, 1}, make([]Metadata, 4),
							[]Buffer{x, w, g, buf([]int32{int32(width), int32(rows / groups)})},
							[]Buffer{dx, buf(dw)})
						require.NoError(b, err)
					}
				})
			}
		}
	}
}

// BenchmarkLaunch measures the overhead of a launch, with kernels that do little work.
func BenchmarkLaunch(b *testing.B) {
	plain, fibers := compileFile(b, "copy"), compileFile(b, "row_sum")
	x, y, sums := make([]uint16, 1<<16), make([]uint16, 1<<16), make([]float32, 1<<16)
	for _, groups := range []int{1, 2, 64} {
		b.Run(fmt.Sprintf("plain/groups=%d", groups), func(b *testing.B) {
			for b.Loop() {
				run(b, plain, [3]int{32 * groups, 1, 1}, [3]int{32, 1, 1}, []Buffer{buf(x), buf([]float32{1})}, []Buffer{buf(y)})
			}
		})
		b.Run(fmt.Sprintf("fibers/groups=%d", groups), func(b *testing.B) {
			for b.Loop() {
				run(b, fibers, [3]int{32 * groups, 1, 1}, [3]int{32, 1, 1}, []Buffer{buf(x), buf([]int32{32})}, []Buffer{buf(sums)})
			}
		})
	}
}

// BenchmarkElementwise measures an elementwise kernel. It runs as a loop and is memory-bound.
func BenchmarkElementwise(b *testing.B) {
	l := compileFile(b, "copy")
	const n = 1 << 22
	x, y := make([]uint16, n), make([]uint16, n)
	for i := range x {
		x[i] = uint16(i)
	}
	b.SetBytes(4 * n)
	for b.Loop() {
		run(b, l, [3]int{n, 1, 1}, [3]int{256, 1, 1}, []Buffer{buf(x), buf([]float32{1})}, []Buffer{buf(y)})
	}
}

// BenchmarkExponentials compares exponentials, logarithms and tanh with libm's. An operation computes 2²⁰ elements.
func BenchmarkExponentials(b *testing.B) {
	const n = 1 << 20
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(i%1000)/100 + 0.001
	}
	for _, f := range expFunctions {
		libm := "__builtin_" + f.name + "f("
		if f.name == "exp10" {
			libm = "__builtin_powf(10.0f,"
		}
		for _, of := range []struct{ name, call string }{{"ours", f.name + "("}, {"libm", libm}} {
			l := compileFile(b, "exp_loop", "FUNCTION", of.call)
			b.Run(f.name+"/"+of.name, func(b *testing.B) {
				for b.Loop() {
					run(b, l, [3]int{n / 1024, 1, 1}, [3]int{1, 1, 1}, []Buffer{buf(x)}, []Buffer{buf(y)})
				}
			})
		}
	}
}
