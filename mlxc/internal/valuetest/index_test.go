package valuetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// selection is a list of Index values with the expected result for an array: the result's shape and, for each element
// of the result, its row-major position in the array. Plain loops compute both.
type selection struct {
	at        []mlxc.Index
	shape     []int
	positions []int
}

// randomSelection draws a selection from an array of this shape. With ids set, up to two axes have ids: ids of shape
// (2,3) for the first axis and (3) for the second, which broadcast.
func randomSelection(r *rand.Rand, shape []int, ids bool) selection {
	type axis struct {
		size int // in the result
	}
	var s selection
	var result []axis
	place := make([]func(i []int) int, len(shape)) // maps a result index to the position along each axis
	idsAt := -1
	for in, n := range shape {
		k := len(result)
		if r.IntN(5) == 0 {
			s.at = append(s.at, mlxc.NewAxis)
			result = append(result, axis{size: 1})
			k++
		}
		kind := r.IntN(5)
		if n == 0 {
			kind = 0
		}
		switch {
		case kind == 1:
			i := r.IntN(2*n) - n
			s.at = append(s.at, mlxc.At(i))
			place[in] = func([]int) int { return (i + n) % n }
		case kind == 2 && ids && idsAt != -2:
			if idsAt < 0 {
				idsAt = k
				first := []int{r.IntN(n), r.IntN(n)}
				s.at = append(s.at,
					mlxc.IDs(mlxc.FromSlice([]int32{int32(first[0]), int32(first[1] - n)}, 2, 1).BroadcastTo(2, 3)))
				result = append(result, axis{size: 2}, axis{size: 3})
				place[in] = func(i []int) int { return first[i[k]] }
			} else {
				at := idsAt
				idsAt = -2
				second := []uint8{uint8(r.IntN(n)), uint8(r.IntN(n)), uint8(r.IntN(n))}
				s.at = append(s.at, mlxc.IDs(mlxc.FromSlice(second)))
				place[in] = func(i []int) int { return int(second[i[at+1]]) }
			}
		case kind >= 3:
			from := r.IntN(n + 1)
			to := from + r.IntN(n-from+1)
			step := []int{1, 2, 3, -1, -2, 1 << 40, -1 << 40}[r.IntN(7)]
			index := mlxc.Range(from, to)
			if to == n {
				index = mlxc.Range(from, mlxc.End)
			} else if to > 0 && r.IntN(2) == 0 {
				index = mlxc.Range(from, to-n)
			}
			s.at = append(s.at, index.Step(step))
			var chosen []int
			for p := from; step > 0 && p < to; p += step {
				chosen = append(chosen, p)
			}
			for p := to - 1; step < 0 && p >= from; p += step {
				chosen = append(chosen, p)
			}
			result = append(result, axis{size: len(chosen)})
			place[in] = func(i []int) int { return chosen[i[k]] }
		default:
			s.at = append(s.at, mlxc.All)
			result = append(result, axis{size: n})
			place[in] = func(i []int) int { return i[k] }
		}
	}
	total := 1
	for _, a := range result {
		s.shape = append(s.shape, a.size)
		total *= a.size
	}
	for flat := range total {
		i, rest := make([]int, len(result)), flat
		for k := len(result) - 1; k >= 0; k-- {
			i[k] = rest % result[k].size
			rest /= result[k].size
		}
		position := 0
		for in, n := range shape {
			position = position*n + place[in](i)
		}
		s.positions = append(s.positions, position)
	}
	return s
}

// selections runs f on many random selections from arrays that are not contiguous. x holds the elements of a.
func selections(t *testing.T, ids bool, f func(a *mlxc.Array, x []float64, s selection)) {
	r := rand.New(rand.NewPCG(1, 2))
	dtypes := mlxc.DTypes()
	for n := range 150 {
		shape := make([]int, 1+r.IntN(4))
		reversed := make([]int, len(shape))
		for i := range shape {
			shape[i] = r.IntN(5)
			if r.IntN(4) > 0 {
				shape[i] = max(shape[i], 1)
			}
			reversed[len(shape)-1-i] = shape[i]
		}
		a := counting(reversed...).Transpose().Remainder(mlxc.Scalar[float32](50)).AsType(dtypes[n%len(dtypes)])
		s := randomSelection(r, shape, ids)
		mlxc.WithScope(func() {
			f(a, wide(t, a), s)
		})
		if t.Failed() {
			t.Fatalf("%v of the shape %v, %v", s.at, shape, a.DType())
		}
	}
}

func init() {
	choose := func(ids bool) func(t *testing.T) {
		return func(t *testing.T) {
			selections(t, ids, func(a *mlxc.Array, x []float64, s selection) {
				want := []float64{}
				for _, p := range s.positions {
					want = append(want, x[p])
				}
				got := a.Index(s.at...)
				require.Equal(t, a.DType(), got.DType())
				requireArray(t, append([]int{}, s.shape...), want, got)
			})
		}
	}
	value("mlx_gather", func(t *testing.T) {
		choose(true)(t)
		// Windows of 2×2 that begin at (0,1) and at (1,0).
		x := counting(3, 3)
		rows, columns := mlxc.FromSlice([]int32{0, 1}), mlxc.FromSlice([]int32{1, 0})
		requireArray(t, []int{2, 2, 2}, []float64{1, 2, 4, 5, 3, 4, 6, 7},
			x.Gather(arrays{rows, columns}, []int{0, -1}, []int{2, 2}))
		requireArray(t, []int{2, 1, 3}, []float64{0, 1, 2, 3, 4, 5}, x.Gather(arrays{rows}, []int{-2}, []int{1, 3}))
		requireArray(t, []int{2, 0, 3}, []float64{}, x.Gather(arrays{rows}, []int{0}, []int{0, 3}))
		requireArray(t, []int{0, 1, 3}, []float64{}, x.Gather(arrays{mlxc.Zeros(mlxc.Int32, 0)}, []int{0}, []int{1, 3}))
		requireArray(t, []int{3, 3}, wide(t, x), x.Gather(nil, nil, []int{3, 3}))
		requireArray(t, []int{2, 2}, []float64{1, 0, 4, 3}, x.Index(mlxc.IDs(rows.Reshape(2, 1)), mlxc.IDs(columns)))
	})
	for _, c := range []struct {
		slice, scatter string
		got            func(a, update *mlxc.Array, at ...mlxc.Index) *mlxc.Array
		combine        func(old, update float64) float64
	}{
		{"mlx_slice_update", "mlx_scatter", (*mlxc.Array).SetAt, func(_, u float64) float64 { return u }},
		{"mlx_slice_update_add", "mlx_scatter_add", (*mlxc.Array).AddAt, func(x, u float64) float64 { return x + u }},
		{"mlx_slice_update_prod", "mlx_scatter_prod", (*mlxc.Array).MulAt, func(x, u float64) float64 { return x * u }},
		{"mlx_slice_update_max", "mlx_scatter_max", (*mlxc.Array).MaximumAt, math.Max},
		{"mlx_slice_update_min", "mlx_scatter_min", (*mlxc.Array).MinimumAt, math.Min},
	} {
		for name, ids := range map[string]bool{c.slice: false, c.scatter: true} {
			value(name, func(t *testing.T) {
				selections(t, ids, func(a *mlxc.Array, x []float64, s selection) {
					if a.DType() == mlxc.Bool || a.DType() == mlxc.Complex64 && c.combine(1, 2) != 2 &&
						c.combine(1, 2) != 3 {
						return // booleans have no arithmetic, complex numbers no order
					}
					// An update depends only on its position, so repeated ids set an element to equal
					// values. Updates are small, so products fit most dtypes.
					update := make([]float64, len(s.positions))
					for i, p := range s.positions {
						update[i] = float64(1 + (p*7)%3)
					}
					want := append([]float64{}, x...)
					for i, p := range s.positions {
						want[p] = c.combine(want[p], update[i])
					}
					for i, v := range want {
						if v > 100 { // may overflow int8
							want[i], x[i] = 0, 0
						}
					}
					a = mlxc.FromSlice(x, a.Shape()...).AsType(a.DType())
					want = append([]float64{}, x...)
					for i, p := range s.positions {
						want[p] = c.combine(want[p], update[i])
					}
					u := mlxc.FromSlice(update, s.shape...)
					if len(s.shape) == 0 {
						u = u.Reshape()
					}
					got := c.got(a, u, s.at...)
					require.Equal(t, a.DType(), got.DType())
					requireArray(t, a.Shape(), want, got)
					requireArray(t, a.Shape(), x, a)
				})
				// The update is broadcast.
				x := mlxc.Full(mlxc.Float32, mlxc.Scalar[float32](2), 2, 3)
				at := []mlxc.Index{mlxc.All, mlxc.Range(1, mlxc.End)}
				if ids {
					at[1] = mlxc.IDs(mlxc.FromSlice([]int32{1, -1}))
				}
				want := c.combine(2, 3)
				requireArray(t, []int{2, 3}, []float64{2, want, want, 2, want, want},
					c.got(x, mlxc.Scalar[int8](3), at...))
				want2 := c.combine(2, 1)
				requireArray(t, []int{2, 3}, []float64{2, want, want2, 2, want, want2},
					c.got(x, mlxc.FromSlice([]float32{3, 1}), at...))
			})
		}
	}
	value("mlx_take_axis", func(t *testing.T) {
		inEveryDType(t, 2, 3, func(t *testing.T, d mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 2, 2}, []float64{2, 0, 0, 1, 5, 3, 3, 4},
				a.Take(mlxc.FromSlice([]int32{2, 0, -3, 1}, 2, 2), 1))
			requireArray(t, []int{3}, []float64{3, 4, 5}, a.Take(mlxc.Scalar[uint64](1), -2))
		})
	})
	value("mlx_take_along_axis", func(t *testing.T) {
		inEveryDType(t, 2, 3, func(t *testing.T, d mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 1}, []float64{2, 4}, a.TakeAlongAxis(mlxc.FromSlice([]int8{-1, 1}, 2, 1), 1))
			requireArray(t, []int{1, 3}, []float64{3, 1, 5},
				a.TakeAlongAxis(mlxc.FromSlice([]int64{1, 0, -1}, 1, 3), 0))
		})
	})
	value("mlx_put_along_axis", func(t *testing.T) {
		inEveryDType(t, 2, 3, func(t *testing.T, d mlxc.DType, a *mlxc.Array) {
			ids := mlxc.FromSlice([]int32{-1, 1}, 2, 1)
			requireArray(t, []int{2, 3}, []float64{0, 1, 7, 3, 8, 5},
				a.PutAlongAxis(ids, mlxc.FromSlice([]int8{7, 8}, 2, 1), 1))
			requireArray(t, []int{2, 3}, []float64{0, 1, 9, 3, 9, 5}, a.PutAlongAxis(ids, mlxc.Scalar[float32](9), -1))
			requireArray(t, []int{2, 3}, []float64{0, 9, 9, 9, 4, 5},
				a.PutAlongAxis(mlxc.FromSlice([]int32{1, 0, 0}, 1, 3), mlxc.Scalar[float32](9), 0))
		})
		requireArray(t, []int{2, 0}, []float64{},
			mlxc.Zeros(mlxc.Float32, 2, 0).PutAlongAxis(mlxc.Zeros(mlxc.Int32, 2, 0), mlxc.Scalar[float32](1), 1))
	})
	value("mlx_scatter_add_axis", func(t *testing.T) {
		inEveryDType(t, 2, 3, func(t *testing.T, d mlxc.DType, a *mlxc.Array) {
			ids := mlxc.FromSlice([]int32{2, 2, 0, 1}, 2, 2)
			requireArray(t, []int{2, 3}, []float64{0, 1, 5, 6, 8, 5},
				a.ScatterAddAlongAxis(ids, mlxc.FromSlice([]int8{1, 2, 3, 4}, 2, 2), 1))
		})
	})
	value("mlx_masked_scatter", func(t *testing.T) {
		inEveryDType(t, 2, 3, func(t *testing.T, d mlxc.DType, a *mlxc.Array) {
			mask := mlxc.FromSlice([]bool{true, false, true, false, false, true}, 3, 2).Transpose() // 1 1 0, 0 0 1
			requireArray(t, []int{2, 3}, []float64{7, 8, 2, 3, 4, 9},
				a.MaskedScatter(mask, mlxc.FromSlice([]int8{7, 8, 9})))
			requireArray(t, []int{2, 3}, []float64{7, 8, 2, 3, 4, 9},
				a.MaskedScatter(mask, mlxc.FromSlice([]int8{7, 8, 9, 10})))
			// A mask that selects rows.
			requireArray(t, []int{2, 3}, []float64{0, 1, 2, 7, 8, 9},
				a.MaskedScatter(mlxc.FromSlice([]bool{false, true}), mlxc.FromSlice([]int8{7, 8, 9}, 1, 3)))
		})
	})
	value("mlx_slice_dynamic", func(t *testing.T) {
		inEveryDType(t, 2, 3, func(t *testing.T, d mlxc.DType, a *mlxc.Array) {
			for start, want := range map[int32][]float64{
				0: {0, 1, 3, 4}, 1: {1, 2, 4, 5}, 2: {1, 2, 4, 5},
				math.MaxInt32: {1, 2, 4, 5}, -1: {0, 1, 3, 4}, math.MinInt32: {0, 1, 3, 4},
			} {
				requireArray(t, []int{2, 2}, want,
					a.SliceDynamic(mlxc.FromSlice([]int32{start}), []int{-1}, []int{2, 2}))
			}
			requireArray(t, []int{1, 1}, []float64{5},
				a.SliceDynamic(mlxc.FromSlice([]uint8{1, 2}), []int{0, 1}, []int{1, 1}))
			requireArray(t, []int{1, 1}, []float64{5},
				a.SliceDynamic(mlxc.FromSlice([]uint64{2, 1}), []int{1, 0}, []int{1, 1}))
			requireArray(t, []int{1, 2}, []float64{3, 4}, a.SliceDynamic(mlxc.Scalar[int64](1), []int{0}, []int{1, 2}))
			requireArray(t, []int{2, 0}, []float64{}, a.SliceDynamic(mlxc.Scalar[int64](9), []int{1}, []int{2, 0}))
		})
	})
	value("mlx_slice_update_dynamic", func(t *testing.T) {
		inEveryDType(t, 2, 3, func(t *testing.T, d mlxc.DType, a *mlxc.Array) {
			u := mlxc.FromSlice([]int8{7, 8}, 1, 2)
			requireArray(t, []int{2, 3}, []float64{0, 1, 2, 3, 7, 8},
				a.SliceUpdateDynamic(u, mlxc.FromSlice([]int32{1, 1}), []int{0, 1}))
			requireArray(t, []int{2, 3}, []float64{0, 1, 2, 3, 7, 8},
				a.SliceUpdateDynamic(u, mlxc.FromSlice([]int32{9, 9}), []int{0, 1}))
			requireArray(t, []int{2, 3}, []float64{7, 8, 2, 3, 4, 5},
				a.SliceUpdateDynamic(u, mlxc.FromSlice([]int32{-9}), []int{1}))
			requireArray(t, []int{2, 3}, []float64{0, 1, 2, 7, 8, 5},
				a.SliceUpdateDynamic(u, mlxc.Scalar[uint8](1), []int{0}))
		})
	})
}

func TestIndexStrings(t *testing.T) {
	require.Equal(t, "[: 1:3 2: ::-1 1:3:2 -1 … new axis ids int32(2) ::0]", fmt.Sprint([]mlxc.Index{
		mlxc.All, mlxc.Range(1, 3), mlxc.Range(2, mlxc.End), mlxc.All.Step(-1), mlxc.Range(1, 3).Step(2), mlxc.At(-1),
		mlxc.Rest, mlxc.NewAxis, mlxc.IDs(mlxc.Zeros(mlxc.Int32, 2)), mlxc.All.Step(0),
	}))
}

func TestRest(t *testing.T) {
	testdevice.CPUOnly(t, "compares with float64 in Go, with tolerances for MLX's CPU backend")
	x := counting(2, 3, 4)
	requireArray(t, []int{2, 3}, []float64{0, 4, 8, 12, 16, 20}, x.Index(mlxc.Rest, mlxc.At(0)))
	requireArray(t, []int{3}, []float64{1, 5, 9}, x.Index(mlxc.At(0), mlxc.Rest, mlxc.At(1)))
	requireArray(t, []int{1, 2, 3, 4, 1}, wide(t, x), x.Index(mlxc.NewAxis, mlxc.Rest, mlxc.NewAxis))
	requireArray(t, []int{}, []float64{23}, x.Index(mlxc.At(-1), mlxc.At(-1), mlxc.Rest, mlxc.At(-1)))
	requireArray(t, []int{2, 3, 4}, wide(t, x), x.Index())
	requireArray(t, []int{1}, []float64{5}, mlxc.Scalar[float32](5).Index(mlxc.NewAxis))
	requireArray(t, []int{}, []float64{7}, mlxc.Scalar[float32](5).SetAt(mlxc.Scalar[float32](7)))
}

func TestAlong(t *testing.T) {
	testdevice.CPUOnly(t, "compares with float64 in Go, with tolerances for MLX's CPU backend")
	x := counting(2, 3)
	var got []float64
	for i, column := range x.Along(-1) {
		require.Equal(t, []int{2}, column.Shape())
		require.Equal(t, []float64{float64(i), float64(i + 3)}, wide(t, column))
		got = append(got, wide(t, column)...)
		if i == 1 {
			break
		}
	}
	require.Equal(t, []float64{0, 3, 1, 4}, got)
	for range mlxc.Zeros(mlxc.Float32, 0, 2).Along(0) {
		t.Error("there is nothing")
	}
	n := 0
	for _, a := range x.Along(2) {
		require.ErrorContains(t, a.Err(), "along float32(2,3): there is no axis 2")
		n++
	}
	require.Equal(t, 1, n)
}
