package valuetest

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func init() {
	// each runs f along each axis of a transposed matrix in every real dtype. rows holds the elements along the axis.
	each := func(t *testing.T, f func(a *mlxc.Array, axis int, rows [][]float64)) {
		for _, d := range mlxc.DTypes() {
			if d == mlxc.Complex64 {
				continue
			}
			x := []int8{3, 1, 2, 7, 0, 5, 1, 1, 9, 4, 5, 2, 8, 6, 5}
			a := mlxc.FromSlice(x, 5, 3).AsType(d).Transpose()
			in := wide(t, a)
			for _, axis := range []int{0, 1, -1, -2} {
				f(a, axis, groups(in, []int{3, 5}, []int{axis}))
			}
		}
	}
	lines := func(t *testing.T, a *mlxc.Array, axis int) [][]float64 {
		return groups(wide(t, a), a.Shape(), []int{axis})
	}
	sorted := func(x []float64) []float64 { return slices.Sorted(slices.Values(x)) }
	value("mlx_sort_axis", func(t *testing.T) {
		each(t, func(a *mlxc.Array, axis int, rows [][]float64) {
			require.Equal(t, a.DType(), a.Sort(axis).DType())
			for i, got := range lines(t, a.Sort(axis), axis) {
				require.Equal(t, sorted(rows[i]), got)
			}
		})
		nan := float32(math.NaN())
		got := floats(t, mlxc.FromSlice([]float32{nan, 2, nan, 1, float32(math.Inf(1))}).Sort(0))
		require.Equal(t, []float32{1, 2, float32(math.Inf(1))}, got[:3])
		require.True(t, got[3] != got[3] && got[4] != got[4])
		require.Equal(t, []complex64{-1, 1 - 1i, 1, 1 + 1i, 2},
			read[complex64](t, mlxc.FromSlice([]complex64{1 + 1i, 2, 1, -1, 1 - 1i}).Sort(0)))
	})
	value("mlx_argsort_axis", func(t *testing.T) {
		each(t, func(a *mlxc.Array, axis int, rows [][]float64) {
			order := a.ArgSort(axis)
			require.Equal(t, mlxc.Uint32, order.DType())
			for i, got := range lines(t, order, axis) {
				places := make([]float64, len(got))
				for k := range places {
					places[k] = float64(k)
				}
				// Equal elements keep their order.
				slices.SortStableFunc(places, func(p, q float64) int { return int(rows[i][int(p)] - rows[i][int(q)]) })
				require.Equal(t, places, got)
			}
		})
		require.Equal(t, []uint32{1, 3, 0, 2},
			read[uint32](t, mlxc.FromSlice([]float32{float32(math.NaN()), 1, float32(math.NaN()), 2}).ArgSort(0)))
	})
	partitioned := func(t *testing.T, x, row []float64, kth int) {
		t.Helper()
		require.ElementsMatch(t, row, x)
		kth = (kth + len(x)) % len(x)
		require.InDelta(t, sorted(row)[kth], x[kth], 0)
		for i, v := range x {
			require.True(t, i <= kth && v <= x[kth] || i >= kth && v >= x[kth], "%v at %d", x, kth)
		}
	}
	value("mlx_partition_axis", func(t *testing.T) {
		each(t, func(a *mlxc.Array, axis int, rows [][]float64) {
			for _, kth := range []int{0, 1, -1, -2} {
				for i, got := range lines(t, a.Partition(kth, axis), axis) {
					partitioned(t, got, rows[i], kth)
				}
			}
		})
	})
	value("mlx_argpartition_axis", func(t *testing.T) {
		each(t, func(a *mlxc.Array, axis int, rows [][]float64) {
			for _, kth := range []int{0, 1, -1, -2} {
				order := a.ArgPartition(kth, axis)
				require.Equal(t, mlxc.Uint32, order.DType())
				for i, got := range lines(t, a.TakeAlongAxis(order, axis), axis) {
					partitioned(t, got, rows[i], kth)
				}
			}
		})
		z := []complex64{3, 1, 2 + 1i, 2, 0}
		require.Equal(t, complex64(2), z[read[uint32](t, mlxc.FromSlice(z).ArgPartition(2, 0))[2]])
		require.Equal(t, complex64(2+1i), z[read[uint32](t, mlxc.FromSlice(z).ArgPartition(-2, 0))[3]])
	})
	value("mlx_topk_axis", func(t *testing.T) {
		each(t, func(a *mlxc.Array, axis int, rows [][]float64) {
			for _, k := range []int{0, 1, 2, 3} {
				top := a.TopK(k, axis)
				require.Equal(t, k, top.Dim(axis))
				if k == 0 {
					continue
				}
				for i, got := range lines(t, top, axis) {
					require.Equal(t, sorted(rows[i])[len(rows[i])-k:], sorted(got))
				}
			}
		})
	})
	value("mlx_searchsorted", func(t *testing.T) {
		for _, d := range mlxc.DTypes() {
			if d == mlxc.Complex64 || d == mlxc.Bool {
				continue
			}
			// Every second element, so that a is not contiguous.
			a := mlxc.FromSlice([]int8{1, 0, 2, 0, 2, 0, 2, 0, 5, 0, 9}).AsType(d).Index(mlxc.All.Step(2))
			v := mlxc.FromSlice([]int8{0, 1, 2, 3, 5, 9, 10, 2}, 4, 2).AsType(d).Transpose()
			left, right := a.SearchSorted(v), a.SearchSortedRight(v)
			require.Equal(t, []int{2, 4}, left.Shape())
			require.Equal(t, []uint32{0, 1, 4, 6, 0, 4, 5, 1}, read[uint32](t, left), d)
			require.Equal(t, []uint32{0, 4, 5, 6, 1, 4, 6, 4}, read[uint32](t, right), d)
		}
		none := mlxc.Zeros(mlxc.Float32, 0)
		require.Equal(t, []uint32{0, 0}, read[uint32](t, none.SearchSorted(mlxc.FromSlice([]float32{1, 2}))))
		require.Empty(t, read[uint32](t, counting(3).SearchSorted(none)))
		require.Equal(t, []uint32{3},
			read[uint32](t, counting(3).SearchSorted(mlxc.FromSlice([]float32{float32(math.NaN())}))))
	})
}

func TestSortingEmptyArrays(t *testing.T) {
	for _, shape := range [][]int{{0}, {0, 3}, {3, 0}} {
		none := mlxc.Zeros(mlxc.Float32, shape...)
		for axis, n := range shape {
			for _, a := range []*mlxc.Array{none.Sort(axis), none.TopK(n, axis)} {
				require.Equal(t, shape, a.Shape())
				require.Empty(t, floats(t, a))
			}
			require.Empty(t, read[uint32](t, none.ArgSort(axis)))
			if n > 0 {
				require.Empty(t, floats(t, none.Partition(1, axis)))
				require.Empty(t, read[uint32](t, none.ArgPartition(-1, axis)))
				require.Empty(t, floats(t, none.TopK(1, axis)))
			} else {
				require.ErrorContains(t, none.Partition(0, axis).Err(), "kth")
			}
		}
	}
}
