package mlxc_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var counting = mlxtest.Counting

func TestTakeAndScatterAdd(t *testing.T) {
	const planes, rows, columns = 2, 3, 4
	x := counting(planes, rows, columns)
	ids := []int32{2, 0, 2, -1}
	// Along every axis, with ids of one and two axes. Go arithmetic gives the expected sums.
	for axis, size := range x.Shape() {
		for _, idShape := range [][]int{{4}, {2, 2}, {4, 1}} {
			i := mlxc.FromSlice(ids, idShape...).Remainder(mlxc.Scalar(int32(size)))
			taken := x.Take(i, axis)
			shape := slices.Concat(x.Shape()[:axis], idShape, x.Shape()[axis+1:])
			require.Equal(t, shape, taken.Shape())
			outer, inner := 1, 1
			for k, d := range x.Shape() {
				switch {
				case k < axis:
					outer *= d
				case k > axis:
					inner *= d
				}
			}
			var want []float32
			sums := make([]float32, x.Size())
			for o := range outer {
				for n, id := range ids {
					row := (int(id) + size) % size
					for c := range inner {
						at := (o*size+row)*inner + c
						want = append(want, float32(at))
						sums[at] += float32((o*len(ids)+n)*inner + c)
					}
				}
			}
			require.Equal(t, want, floats(t, taken))
			updates := counting(shape...)
			require.Equal(t, sums, floats(t, mlxc.Zeros(mlxc.Float32, x.Shape()...).ScatterAdd(i, updates, axis-3)))
			// ScatterAdd is the gradient of Take.
			_, grads, err := mlxc.VJP(single(func(a *mlxc.Array) *mlxc.Array { return a.Take(i, axis) }), arrays{x},
				arrays{updates})
			require.NoError(t, err)
			require.Equal(t, sums, floats(t, grads[0]))
		}
	}
	// Negative ids count from the end; a scalar id removes the axis.
	require.Equal(t, []float32{20, 21, 22, 23}, floats(t, x.Take(mlxc.Scalar[int32](-1), 0).Take(mlxc.Scalar[uint8](2),
		0)))
	require.Equal(t, []float32{0, 5}, floats(t, mlxc.Zeros(mlxc.Float32, 2).ScatterAdd(mlxc.Scalar[int32](-1),
		mlxc.Scalar[float32](5), 0)))
	require.Equal(t, []int32{1, 4}, read[int32](t, mlxc.FromSlice([]int32{1, 2}).ScatterAdd(mlxc.FromSlice([]int32{1}),
		mlxc.FromSlice([]float32{2.9}), 0)))
}

func TestAlongAxis(t *testing.T) {
	x := counting(2, 3)
	ids := mlxc.FromSlice([]int32{2, 0, 2, -2, 1, 1, 0, 0}, 2, 4)
	require.Equal(t, []float32{2, 0, 2, 1, 4, 4, 3, 3}, floats(t, x.TakeAlongAxis(ids, 1)))
	require.Equal(t, []float32{2, 0, 2, 1, 5, 3, 5, 4},
		floats(t, x.TakeAlongAxis(ids.Slice([]int{0, 0}, []int{1, 4}, nil), -1)))
	require.Equal(t, []float32{3, 1, 5}, floats(t, x.TakeAlongAxis(mlxc.FromSlice([]int32{1, 0, 1}, 1, 3), 0)))

	updates := counting(2, 4)
	sums := []float32{1, 3, 2, 6 + 7, 4 + 5, 0}
	require.Equal(t, sums, floats(t, mlxc.Zeros(mlxc.Float32, 2, 3).ScatterAddAlongAxis(ids, updates, 1)))
	_, grads, err := mlxc.VJP(single(func(a *mlxc.Array) *mlxc.Array { return a.TakeAlongAxis(ids, 1) }), arrays{x},
		arrays{updates})
	require.NoError(t, err)
	require.Equal(t, sums, floats(t, grads[0]))
	require.Equal(t, []float32{1, 2, 4, 5, 6, 5}, floats(t, x.ScatterAddAlongAxis(ids, mlxc.Scalar[float32](1), 1)))
}

func TestSliceUpdate(t *testing.T) {
	x := counting(3, 4)
	got := x.SliceUpdate(mlxc.FromSlice([]float32{-1, -2}), []int{0, 1}, []int{3, 4}, []int{2, 2})
	require.Equal(t, []float32{0, -1, 2, -2, 4, 5, 6, 7, 8, -1, 10, -2}, floats(t, got))
	require.Equal(t, []float32{-1, -2, -1, -2}, floats(t, got.Slice([]int{0, 1}, []int{3, 4}, []int{2, 2})))
	backwards := x.SliceUpdate(mlxc.FromSlice([]int32{-1, -2}), []int{-1, 3}, []int{3, -5}, []int{1, -3})
	require.Equal(t, []float32{0, 1, 2, 3, 4, 5, 6, 7, -2, 9, 10, -1}, floats(t, backwards))
	require.Equal(t, counting(12).String(), x.Flatten(0, -1).String(), "the operand is unchanged")
}

func TestSortAndArgSort(t *testing.T) {
	const rows, columns = 5, 37
	x := floats(t, normal(7, rows, columns))
	x[3], x[40] = float32(math.Inf(1)), float32(math.Inf(-1))
	a := mlxc.FromSlice(x, rows, columns)
	sorted, order := a.Sort(1), a.ArgSort(-1)
	for i := range rows {
		want := slices.Sorted(slices.Values(row(x, i, columns)))
		require.Equal(t, want, row(floats(t, sorted), i, columns))
		for j, id := range row(read[uint32](t, order), i, columns) {
			require.Equal(t, want[j], row(x, i, columns)[id])
		}
	}
	require.Equal(t, floats(t, sorted), floats(t, a.TakeAlongAxis(order, 1)))
	require.Equal(t, floats(t, a.Transpose().Sort(0)), floats(t, sorted.Transpose()))
}

func TestTriangles(t *testing.T) {
	const rows, columns = 3, 5
	x := counting(2, rows, columns).AddScalar(1)
	for _, k := range []int{math.MinInt, math.MinInt32, -4, -3, -1, 0, 1, 4, 5, 6, math.MaxInt32, math.MaxInt} {
		lower, upper := floats(t, x), floats(t, x)
		for i := range lower {
			r, c := i/columns%rows, i%columns
			if c-r > k {
				lower[i] = 0
			}
			if c-r < k {
				upper[i] = 0
			}
		}
		require.Equal(t, lower, floats(t, x.Tril(k)), k)
		require.Equal(t, upper, floats(t, x.Triu(k)), k)
	}
}

// For every slice of a short axis, the gradient flows to the selected elements only, also for one element with a
// stride.
func TestGradientOfSlices(t *testing.T) {
	const n = 5
	x := mlxc.FromSlice([]float32{1, 2, 3, 4, 5})
	for start := -n - 1; start <= n+1; start++ {
		for stop := -n - 1; stop <= n+1; stop++ {
			for _, stride := range []int{-7, -3, -2, -1, 1, 2, 3, 7} {
				slice := func(in []*mlxc.Array) []*mlxc.Array {
					return []*mlxc.Array{in[0].Slice([]int{start}, []int{stop}, []int{stride}).MulScalar(10)}
				}
				taken := floats(t, slice([]*mlxc.Array{x})[0])
				_, grads, err := mlxc.VJP(slice, []*mlxc.Array{x}, []*mlxc.Array{mlxc.Ones(mlxc.Float32, len(taken))})
				require.NoError(t, err)
				want := make([]float32, n)
				for _, v := range taken {
					want[int(v/10)-1] = 10
				}
				require.Equal(t, want, floats(t, grads[0]), "%d:%d:%d", start, stop, stride)
			}
		}
	}
}

// MaskedScatter under a transform equals MaskedScatter outside, for every shape of mask and source.
func TestMaskedScatterUnderTransforms(t *testing.T) {
	scalar := mlxc.Scalar[float32](9)
	rows := mlxc.FromSlice([]bool{true, false, true})
	for name, c := range map[string]struct {
		a, mask, source  *mlxc.Array
		want, sourceGrad []float32
	}{
		"scalar": {
			a: counting(4), mask: mlxc.FromSlice([]bool{true, false, true, true}), source: scalar,
			want: []float32{9, 1, 9, 9}, sourceGrad: []float32{3},
		},
		"whole mask": {
			a: counting(4), mask: mlxc.FromSlice([]bool{true, false, true, true}), source: counting(3).AddScalar(5),
			want: []float32{5, 1, 6, 7}, sourceGrad: []float32{1, 1, 1},
		},
		"rows": {
			a: counting(3, 2), mask: rows, source: counting(2, 2).AddScalar(10),
			want: []float32{10, 11, 2, 3, 12, 13}, sourceGrad: []float32{1, 1, 1, 1},
		},
		"one row for all": {
			a: counting(3, 2), mask: rows, source: counting(2).AddScalar(10),
			want: []float32{10, 11, 2, 3, 10, 11}, sourceGrad: []float32{2, 2},
		},
		"scalar for rows": {
			a: counting(3, 2), mask: rows, source: scalar, want: []float32{9, 9, 2, 3, 9, 9}, sourceGrad: []float32{4},
		},
		"scalar mask": {
			a: counting(2), mask: mlxc.Scalar(true), source: counting(1, 2).AddScalar(5),
			want: []float32{5, 6}, sourceGrad: []float32{1, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := func(x arrays) arrays { return arrays{x[0].MaskedScatter(c.mask, x[1])} }
			require.Equal(t, c.want, floats(t, f(arrays{c.a, c.source})[0]))
			compiled, err := mlxc.Compile(f).Call(c.a, c.source)
			require.NoError(t, err)
			require.Equal(t, c.want, floats(t, compiled[0]))
			out, grads, err := mlxc.VJP(f, arrays{c.a, c.source}, arrays{mlxc.OnesLike(c.a)})
			require.NoError(t, err)
			require.Equal(t, c.want, floats(t, out[0]))
			require.Equal(t, c.sourceGrad, floats(t, grads[1]))
			mapped := mlxc.Vmap(f, nil, nil)(arrays{mlxc.Stack(0, c.a, c.a), mlxc.Stack(0, c.source, c.source)})
			require.Equal(t, slices.Concat(c.want, c.want), floats(t, mapped[0]))
		})
	}
}

// MaximumAt and MinimumAt with ids return NaN where the element or one of its updates is NaN.
func TestMaximumAtOfNaN(t *testing.T) {
	nan := float32(math.NaN())
	for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16} {
		a := mlxc.FromSlice([]float32{nan, 1, 1, 1}).AsType(d)
		updates := mlxc.FromSlice([]float32{2, nan, 2, 0})
		ids := mlxc.IDs(mlxc.FromSlice([]int32{0, 1, 1, 2}))
		for _, got := range (arrays{a.MaximumAt(updates, ids), a.MinimumAt(updates, ids)}) {
			require.Equal(t, d, got.DType())
			require.Equal(t, []bool{true, true, false, false}, read[bool](t, got.IsNaN()))
		}
		require.Equal(t, []bool{true, true, false, false}, read[bool](t, a.MaximumAt(updates.Slice([]int{0}, []int{2}, nil),
			mlxc.Range(0, 2)).IsNaN()))
	}
	require.Equal(t, []int32{3, 2}, read[int32](t, mlxc.FromSlice([]int32{1, 2}).MaximumAt(mlxc.Scalar[int32](3),
		mlxc.IDs(mlxc.FromSlice([]int32{0})))))
	z := mlxc.FromSlice([]complex64{complex(nan, 0), 1}).MaximumAt(mlxc.Scalar[float32](2), mlxc.IDs(mlxc.FromSlice([]int32{0, 1})))
	require.Equal(t, []bool{true, false}, read[bool](t, z.IsNaN()))
}
