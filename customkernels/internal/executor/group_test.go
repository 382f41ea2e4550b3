package executor

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

func TestPlainKernel(t *testing.T) {
	withCompilers(t, source(t, "copy"), func(t *testing.T, l *Library) []Buffer {
		require.Equal(t, "custom_kernel_copy", l.Name())
		require.False(t, l.NeedsFibers())
		var all []float16.Float16
		for _, n := range []int{1, 2, 31, 32, 33, 1000, 4099} {
			for _, tg := range []int{1, 32, 100, 1024} {
				x, y := make([]float16.Float16, n), make([]float16.Float16, n)
				for i := range x {
					x[i] = float16.Fromfloat32(float32(i))
				}
				run(t, l, [3]int{n, 1, 1}, [3]int{tg, 1, 1}, []Buffer{buf(x), buf([]float32{2})}, []Buffer{buf(y)})
				for i := range y {
					want := float16.Fromfloat32(float16.Fromfloat32(2*x[i].Float32()).Float32() + 3)
					require.Equal(t, want, y[i], "element %d of %d", i, n)
				}
				all = append(all, y...)
			}
		}
		return []Buffer{raw(all)}
	})
}

func TestRowSum(t *testing.T) {
	withCompilers(t, source(t, "row_sum"), func(t *testing.T, l *Library) []Buffer {
		require.True(t, l.NeedsFibers())
		require.Equal(t, 128, l.ThreadgroupMemory())
		const rows = 37
		var all []float32
		for _, width := range []int{1, 31, 32, 33, 1000, 1025} {
			x, want := make([]uint16, rows*width), make([]float32, rows)
			for i := range x {
				v := float32(i%13 - 6)
				x[i] = roundToBfloat(v)
				want[i/width] += v
			}
			for _, tg := range []int{1, 7, 32, 33, 64, 100, 1023, 1024} {
				y := make([]float32, rows)
				run(t, l, [3]int{rows * tg, 1, 1}, [3]int{tg, 1, 1}, []Buffer{buf(x), buf([]int32{int32(width)})}, []Buffer{buf(y)})
				require.Equal(t, want, y, "width %d, %d threads", width, tg)
				all = append(all, y...)
			}
		}
		return []Buffer{raw(all)}
	})
}

// groups runs testdata/groups.cpp. mode selects one of its cases.
func groups(t testing.TB, l *Library, mode int32, grid, tg [3]int, x []float32) (y []float32, counts, attributes []uint32) {
	n := grid[0] * grid[1] * grid[2]
	if x == nil {
		x = make([]float32, n)
	}
	y, counts, attributes = make([]float32, n), make([]uint32, 32), make([]uint32, 32*n)
	run(t, l, grid, tg, []Buffer{buf([]int32{mode}), buf(x)}, []Buffer{buf(y), buf(counts), buf(attributes)})
	return y, counts, attributes
}

func TestThreadgroups(t *testing.T) {
	withCompilers(t, source(t, "groups"), func(t *testing.T, l *Library) []Buffer {
		var results []Buffer
		t.Run("tree reduction", func(t *testing.T) {
			for _, tg := range []int{1, 2, 31, 32, 33, 63, 64, 100, 256, 777, 1024} {
				const n = 3000
				x := make([]float32, n)
				for i := range x {
					x[i] = 1 / float32(i+1)
				}
				y, _, _ := groups(t, l, 0, [3]int{n, 1, 1}, [3]int{tg, 1, 1}, x)
				for start := 0; start < n; start += tg {
					end := min(start+tg, n)
					sum := 0.0
					for _, v := range x[start:end] {
						sum += float64(v)
					}
					for _, v := range y[start:end] {
						require.Equal(t, y[start], v)
						require.InDelta(t, sum, v, 1e-5)
					}
				}
				results = append(results, raw(y))
			}
		})
		t.Run("positions", func(t *testing.T) {
			for _, s := range [][2][3]int{
				{{1, 1, 1}, {1, 1, 1}},
				{{100, 1, 1}, {32, 1, 1}},
				{{5, 7, 3}, {2, 4, 2}},
				{{33, 5, 2}, {16, 8, 8}}, // the threadgroup is reduced to the grid along y and z
				{{70, 9, 4}, {64, 2, 1}},
				{{1024, 2, 1}, {1024, 1, 1}},
			} {
				_, _, a := groups(t, l, 1, s[0], s[1], nil)
				checkPositions(t, s[0], s[1], a)
				results = append(results, raw(a))
			}
		})
		t.Run("early end", func(t *testing.T) {
			for _, tg := range []int{32, 64, 100, 1024} {
				const n = 2500
				y, _, _ := groups(t, l, 2, [3]int{n, 1, 1}, [3]int{tg, 1, 1}, nil)
				for i := range y {
					size, lid := min(tg, n-i/tg*tg), i%tg
					want := float32(0)
					if lid%3 != 1 && lid < 40 {
						want = float32(2*size - (size+1)/3)
					}
					require.Equal(t, want, y[i], "thread %d of %d", i, tg)
				}
			}
		})
		t.Run("atomics", func(t *testing.T) {
			const n = 5000
			x := make([]float32, n)
			want := make([]uint32, 32)
			for i := range x {
				k := i * i % 17
				x[i] = float32(k)
				want[0] += uint32(k)
				want[1+k]++
			}
			want[28], want[29], want[30] = 1, math.MaxUint32, n-1
			for _, tg := range []int{32, 100, 1024} {
				y, counts, _ := groups(t, l, 3, [3]int{n, 1, 1}, [3]int{tg, 1, 1}, x)
				require.Equal(t, want[:31], counts[:31])
				require.True(t, counts[31] >= 1 && counts[31] <= n)
				require.Equal(t, float32(n)/2, y[0])
			}
		})
		t.Run("divergent barriers", func(t *testing.T) {
			for _, tg := range []int{1, 7, 32, 33, 500, 1024} {
				y, _, _ := groups(t, l, 5, [3]int{2000, 1, 1}, [3]int{tg, 1, 1}, nil)
				for i := range y {
					lid, want := i%tg, float32(1)
					if lid%3 == 2 && lid%2 == 1 {
						want = 0
					}
					require.Equal(t, want, y[i])
				}
			}
		})
		t.Run("exchange through device memory", func(t *testing.T) {
			const n, tg = 2048, 256
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(i)
			}
			y, _, _ := groups(t, l, 4, [3]int{n, 1, 1}, [3]int{tg, 1, 1}, x)
			for i := range y {
				require.Equal(t, float32(i/tg*tg+(i%tg+5*33)%tg+5), y[i])
			}
		})
		return results
	})
}

func checkPositions(t *testing.T, grid, tg [3]int, a []uint32) {
	t.Helper()
	var full, count [3]int
	for d := range 3 {
		full[d] = min(tg[d], grid[d])
		count[d] = (grid[d] + full[d] - 1) / full[d]
	}
	volume := func(v [3]int) int { return v[0] * v[1] * v[2] }
	ceil := func(a, b int) int { return (a + b - 1) / b }
	for z := range grid[2] {
		for y := range grid[1] {
			for x := range grid[0] {
				at := [3]int{x, y, z}
				var in, group, size [3]int
				for d := range 3 {
					in[d], group[d] = at[d]%full[d], at[d]/full[d]
					size[d] = min(full[d], grid[d]-group[d]*full[d])
				}
				index := (in[2]*size[1]+in[1])*size[0] + in[0]
				var want []uint32
				for _, v := range [][3]int{at, in, group, size, full, grid, count} {
					want = append(want, uint32(v[0]), uint32(v[1]), uint32(v[2]))
				}
				for _, v := range []int{
					index, index % 32, index / 32, index % 4, index / 4,
					ceil(volume(size), 32), ceil(volume(size), 4), ceil(volume(full), 32), ceil(volume(full), 4), 32, 32,
				} {
					want = append(want, uint32(v))
				}
				i := (z*grid[1]+y)*grid[0] + x
				require.Equal(t, want, a[32*i:32*i+32], "thread %v", at)
			}
		}
	}
}

// Kernels without fibers compute the positions of their threads in the loop.
func TestPlainPositions(t *testing.T) {
	withCompilers(t, plainPositions, func(t *testing.T, l *Library) []Buffer {
		require.False(t, l.NeedsFibers())
		for _, s := range [][2][3]int{{{100, 1, 1}, {32, 1, 1}}, {{5, 7, 3}, {2, 4, 2}}, {{33, 5, 2}, {16, 8, 8}}} {
			a := make([]uint32, 32*s[0][0]*s[0][1]*s[0][2])
			run(t, l, s[0], s[1], nil, []Buffer{buf(a)})
			checkPositions(t, s[0], s[1], a)
		}
		return nil
	})
}

const plainPositions = `#include "metal_host.h"
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
  const uint3 g3 = p.threads_per_grid, at = p.thread_position_in_grid;
  uint* a = static_cast<uint*>(buffers[0]) + ((at.z * g3.y + at.y) * g3.x + at.x) * 32;
  uint k = 0;
  const uint3 all[] = {p.thread_position_in_grid, p.thread_position_in_threadgroup, p.threadgroup_position_in_grid,
    p.threads_per_threadgroup, p.dispatch_threads_per_threadgroup, p.threads_per_grid, p.threadgroups_per_grid};
  for (uint3 v : all) { a[k++] = v.x; a[k++] = v.y; a[k++] = v.z; }
  a[k++] = p.thread_index_in_threadgroup; a[k++] = p.thread_index_in_simdgroup; a[k++] = p.simdgroup_index_in_threadgroup;
  a[k++] = p.thread_index_in_quadgroup; a[k++] = p.quadgroup_index_in_threadgroup;
  a[k++] = p.simdgroups_per_threadgroup; a[k++] = p.quadgroups_per_threadgroup;
  a[k++] = p.dispatch_simdgroups_per_threadgroup; a[k++] = p.dispatch_quadgroups_per_threadgroup;
  a[k++] = p.threads_per_simdgroup; a[k++] = p.thread_execution_width;
} }
extern "C" const mlxg::entry mlxgrad_entry = { "positions", 1, mlxg_invoke };
`

func TestMetadata(t *testing.T) {
	withCompilers(t, source(t, "metadata"), func(t *testing.T, l *Library) []Buffer {
		x, w, y := []float32{1, 2, 3, 4, 5, 6}, []float32{1, 10}, make([]float32, 6)
		in := []Buffer{{Data: buf(x).Data, Shape: []int{2, 3}}, buf(w)}
		require.NoError(t, l.Run([3]int{6, 1, 1}, [3]int{6, 1, 1}, []Metadata{Shape | Strides | NDim, Shape}, in, []Buffer{buf(y)}))
		require.Equal(t, []float32{2001, 2020, 2003, 2040, 2005, 2060}, y)
		return nil
	})
}

func TestMatrices(t *testing.T) {
	for _, dtype := range []string{"float", "half", "bfloat"} {
		t.Run(dtype, func(t *testing.T) {
			withCompilers(t, source(t, "matrix", "TYPE", dtype), func(t *testing.T, l *Library) []Buffer {
				const groups = 5
				size := 2
				if dtype == "float" {
					size = 4
				}
				// Small integers are exact in every type, so the results must be equal.
				encode := func(v []float32) []byte {
					out := make([]byte, 0, len(v)*size)
					for _, f := range v {
						switch dtype {
						case "float":
							b := math.Float32bits(f)
							out = append(out, byte(b), byte(b>>8), byte(b>>16), byte(b>>24))
						case "half":
							b := float16.Fromfloat32(f)
							out = append(out, byte(b), byte(b>>8))
						default:
							b := roundToBfloat(f)
							out = append(out, byte(b), byte(b>>8))
						}
					}
					return out
				}
				a, b, c := make([]float32, 64*groups), make([]float32, 64*groups), make([]float32, 64*groups)
				for i := range a {
					a[i], b[i], c[i] = float32(i%7-3), float32(i%5-2), float32(i%11)
				}
				y, extra := make([]float32, 64*groups), make([]byte, 64*groups*size)
				run(t, l, [3]int{32 * groups, 1, 1}, [3]int{32, 1, 1},
					[]Buffer{buf(encode(a)), buf(encode(b)), buf(c)}, []Buffer{buf(y), buf(extra)})
				wantExtra := make([]float32, 64*groups)
				for g := range groups {
					for r := range 8 {
						for col := range 8 {
							sum := c[64*g+8*r+col]
							for k := range 8 {
								sum += a[64*g+8*r+k] * b[64*g+8*col+k]
							}
							require.Equal(t, sum, y[64*g+8*r+col], "group %d, element %d, %d", g, r, col)
							wantExtra[64*g+8*r+col] = float32(1 + 2*(col%2))
						}
					}
				}
				require.Equal(t, encode(wantExtra), extra)
				return []Buffer{raw(y)}
			})
		})
	}
}

func TestMatrixCopy(t *testing.T) {
	withCompilers(t, source(t, "matrix_copy"), func(t *testing.T, l *Library) []Buffer {
		require.True(t, l.NeedsFibers())
		x, y, want := make([]float32, 128), make([]float32, 128), make([]float32, 128)
		for i := range x {
			x[i] = float32(i)
			want[i/64*64+i%8*8+i%64/8] = x[i]
		}
		run(t, l, [3]int{64, 1, 1}, [3]int{32, 1, 1}, []Buffer{buf(x)}, []Buffer{buf(y)})
		require.Equal(t, want, y)
		return nil
	})
}

func TestThreadgroupMemory(t *testing.T) {
	t.Parallel()
	l := compileFile(t, "memory", "SIZE", "8192")
	require.Equal(t, 32768, l.ThreadgroupMemory())
	y := make([]float32, 4)
	run(t, l, [3]int{4, 1, 1}, [3]int{4, 1, 1}, nil, []Buffer{buf(y)})
	require.Equal(t, []float32{6, 6, 6, 6}, y)

	l = compileFile(t, "memory", "SIZE", "8196")
	_, _, _, _, err := l.NewLaunch([3]int{4, 1, 1}, [3]int{4, 1, 1})
	require.EqualError(t, err, "kernel custom_kernel_memory: 32784 bytes of threadgroup memory, more than 32768")
}

func TestRefusedLaunches(t *testing.T) {
	t.Parallel()
	l := compileFile(t, "copy")
	for _, c := range []struct {
		grid, tg [3]int
		inputs   int
		want     string
	}{
		{[3]int{0, 1, 1}, [3]int{1, 1, 1}, 2, "must be positive"},
		{[3]int{1, 1, 1}, [3]int{1, -1, 1}, 2, "must be positive"},
		{[3]int{1 << 33, 1, 1}, [3]int{1, 1, 1}, 2, "does not fit 32 bits"},
		{[3]int{1 << 30, 1 << 30, 16}, [3]int{1, 1, 1}, 2, "has more than 2⁴⁸ threadgroups"}, // 2⁶⁴, 0 in 64 bits
		{[3]int{1 << 30, 1 << 19, 1}, [3]int{1, 1, 1}, 2, "has more than 2⁴⁸ threadgroups"},
		{[3]int{4096, 1, 1}, [3]int{1025, 1, 1}, 2, "1024 threads"},
		{[3]int{4096, 8, 1}, [3]int{32, 32, 2}, 2, "has 2048 threads, more than 1024"},
		{[3]int{32, 1, 1}, [3]int{32, 1, 1}, 4, "4 inputs with metadata need 4 buffers, and the kernel has 3"},
	} {
		_, _, _, _, err := l.NewLaunch(c.grid, c.tg, make([]Metadata, c.inputs)...)
		require.ErrorContains(t, err, c.want, fmt.Sprint(c))
		require.ErrorContains(t, err, "kernel custom_kernel_copy: ")
	}
}
