package mlxheaders

import (
	"cmp"
	"math"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// roundUp returns the least multiple of m that is at least n.
func roundUp(n, m int) int { return (n + m - 1) / m * m }

// mlxRows returns the cases of kernels that process one row with each threadgroup.
func (c *corpus) mlxRows() []headerCase {
	const rows = 3
	f := mlxc.Float32
	// Each thread of softmax and logsumexp reads four elements.
	row := func(d mlxc.DType, width, threads int, softmax bool) headerLaunch {
		x, _ := c.Normal(d, rows, width)
		out := result{dtype: d, shape: []int{rows, width}}
		if !softmax {
			out.shape = []int{rows}
		}
		return headerLaunch{
			grid: [3]int{threads * rows, 1, 1}, threadgroup: [3]int{threads, 1, 1},
			arguments: []any{x, out, int32(width)},
			check: func(t testing.TB, got arrays) {
				x := x.AsType(f)
				top := x.Max(1).Reshape(rows, 1)
				e := x.Sub(top).Exp()
				sum := e.Sum(1).Reshape(rows, 1)
				want := top.Add(sum.Log())
				if softmax {
					want = e.Div(sum)
				}
				mlxtest.RequireNear(t, mlxtest.Values(t, want), got[0], mlxtest.Rounded(d, 64, 8))
			},
		}
	}
	single := func(softmax bool) func(mlxc.DType) headerLaunch {
		return func(d mlxc.DType) headerLaunch { return row(d, 301, roundUp(76, 32), softmax) }
	}
	looped := func(softmax bool) func(mlxc.DType) headerLaunch {
		// The first simdgroup reads 32 partial results, one for each simdgroup, so the threadgroup must have 1024
		// threads.
		return func(d mlxc.DType) headerLaunch { return row(d, 5003, 1024, softmax) }
	}
	return []headerCase{
		{"softmax.h", nil, "softmax_single_row", "{T}, float, 4", mlxtest.FloatDTypes, nil, single(true)},
		{"softmax.h", nil, "softmax_looped", "{T}, float, 4", mlxtest.FloatDTypes, nil, looped(true)},
		{"logsumexp.h", nil, "logsumexp", "{T}, float, 4", mlxtest.FloatDTypes, nil, single(false)},
		{"logsumexp.h", nil, "logsumexp_looped", "{T}, float, 4", mlxtest.FloatDTypes, nil, looped(false)},
		{"sort.h", nil, "block_sort", "{T}, {T}, false, 128, 8", mlxtest.FloatDTypes, nil, func(d mlxc.DType) headerLaunch { return c.blockSort(d, false) }},
		{"sort.h", nil, "block_sort", "{T}, uint32_t, true, 128, 8", onlyFloat32, nil, func(d mlxc.DType) headerLaunch { return c.blockSort(d, true) }},
		{"scan.h", nil, "contiguous_scan", "{T}, {T}, CumSum<{T}>, 4, true, false", []mlxc.DType{f, mlxc.Int32}, nil, func(d mlxc.DType) headerLaunch { return c.contiguousScan(d, false) }},
		{"scan.h", nil, "contiguous_scan", "{T}, {T}, CumMax<{T}>, 4, true, true", onlyFloat32, nil, func(d mlxc.DType) headerLaunch { return c.contiguousScan(d, true) }},
		{"scan.h", nil, "strided_scan", "{T}, {T}, CumSum<{T}>, 4, true, false", onlyFloat32, nil, c.stridedScan},
		{"hadamard.h", nil, "hadamard_n", "{T}, 128, 16, 4, 1", onlyFloat32, nil, c.hadamard},
		{"searchsorted.h", []string{"sort.h"}, "searchsorted", "{T}, true", onlyFloat32, nil, c.searchSorted},
	}
}

var onlyFloat32 = []mlxc.DType{mlxc.Float32}

func (c *corpus) blockSort(d mlxc.DType, arguments bool) headerLaunch {
	const rows, width = 3, 777
	x, v := c.Normal(d, rows, width)
	out := result{dtype: d, shape: []int{rows, width}}
	if arguments {
		out.dtype = mlxc.Uint32
	}
	return headerLaunch{
		grid: [3]int{128, rows, 1}, threadgroup: [3]int{128, 1, 1},
		arguments: []any{x, out, int32(width), int32(1), int32(1), int32(width), int32(width)},
		check: func(t testing.TB, got arrays) {
			mlxtest.RequireNear(t, mlxtest.ByRow(v, width, func(row []float64) []float64 {
				values, places := mlxtest.Sorted(row, width, cmp.Compare[float64])
				if arguments {
					return places
				}
				return values
			}), got[0], mlxtest.Bound{})
		},
	}
}

func (c *corpus) contiguousScan(d mlxc.DType, greatestFromRight bool) headerLaunch {
	const rows, width, threads = 3, 777, 64
	x, v := c.Integers(d, 100, rows, width)
	return headerLaunch{
		grid: [3]int{threads, rows, 1}, threadgroup: [3]int{threads, 1, 1},
		arguments: []any{x, result{dtype: d, shape: []int{rows, width}}, uint64(width)},
		check: func(t testing.TB, got arrays) {
			mlxtest.RequireNear(t, mlxtest.ByRow(v, width, func(row []float64) []float64 {
				if !greatestFromRight {
					return mlxtest.PrefixSums(row)
				}
				y := make([]float64, width)
				greatest := math.Inf(-1)
				for i := width - 1; i >= 0; i-- {
					greatest = max(greatest, row[i])
					y[i] = greatest
				}
				return y
			}), got[0], mlxtest.Bound{})
		},
	}
}

// stridedScan is a prefix sum along the middle axis.
func (c *corpus) stridedScan(d mlxc.DType) headerLaunch {
	const batch, length, stride = 2, 45, 70
	const blocks = (stride + 31) / 32
	x, v := c.Integers(d, 100, batch, length, stride)
	return headerLaunch{
		grid: [3]int{256, batch * blocks, 1}, threadgroup: [3]int{256, 1, 1},
		arguments: []any{x, result{dtype: d, shape: []int{batch, length, stride}}, uint64(length), uint64(stride), uint64(blocks)},
		check: func(t testing.TB, got arrays) {
			want := append([]float64{}, v...)
			for i := range want {
				if i/stride%length > 0 {
					want[i] += want[i-stride]
				}
			}
			mlxtest.RequireNear(t, want, got[0], mlxtest.Bound{})
		},
	}
}

// hadamard multiplies by the matrix with the elements (−1)^popcount(i & j).
func (c *corpus) hadamard(d mlxc.DType) headerLaunch {
	const rows, n, scale = 3, 128, 0.125
	x, v := c.Normal(d, rows, n)
	return headerLaunch{
		grid: [3]int{n / 16, rows, 1}, threadgroup: [3]int{n / 16, 1, 1},
		arguments: []any{x, result{dtype: d, shape: []int{rows, n}}, float32(scale)},
		check: func(t testing.TB, got arrays) {
			h := make([]float64, n*n)
			for i := range h {
				h[i] = scale
				for bits := i / n & (i % n); bits > 0; bits &= bits - 1 {
					h[i] = -h[i]
				}
			}
			mlxtest.RequireNear(t, mlxtest.MatMul(v, h, rows, n, n, false), got[0], mlxtest.Rounded(d, 2*7, 5*math.Sqrt(n)))
		},
	}
}

func (c *corpus) searchSorted(d mlxc.DType) headerLaunch {
	const n, queries = 45, 70
	sorted := make([]float32, n)
	for i := range sorted {
		sorted[i] = float32(i / 2)
	}
	a, _ := c.Array(d, sorted, n)
	x, v := c.Uniform(d, -3, n/2+3, queries)
	return headerLaunch{
		grid: [3]int{queries, 1, 1}, threadgroup: [3]int{32, 1, 1},
		arguments: []any{a, x, result{dtype: mlxc.Uint32, shape: []int{queries}}, uint32(n), int64(1)},
		check: func(t testing.TB, got arrays) {
			mlxtest.RequireNear(t, mlxtest.ByRow(v, 1, func(q []float64) []float64 {
				count := 0.0
				for _, s := range sorted {
					if float64(s) <= q[0] {
						count++
					}
				}
				return []float64{count}
			}), got[0], mlxtest.Bound{})
		},
	}
}
