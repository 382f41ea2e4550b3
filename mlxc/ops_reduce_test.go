package mlxc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// row returns row i of a matrix with n columns.
func row[T any](m []T, i, n int) []T { return m[i*n : (i+1)*n] }

func TestReductions(t *testing.T) {
	const rows, columns = 3, 4
	x := []int32{3, -1, 0, 2, 5, 5, 1, 2, -4, 1, 1, 1}
	a := mlxc.FromSlice(x, rows, columns)
	var prod []int32
	var all, anyTrue []bool
	var largest []uint32
	for i := range rows {
		p, every, some, best := int32(1), true, false, 0
		for j, v := range row(x, i, columns) {
			p *= v
			every, some = every && v > 1, some || v > 4
			if v > row(x, i, columns)[best] {
				best = j
			}
		}
		prod, all, anyTrue, largest = append(prod, p), append(all, every), append(anyTrue, some),
			append(largest, uint32(best))
	}
	require.Equal(t, prod, read[int32](t, a.Prod(1)))
	require.Equal(t, all, read[bool](t, a.Greater(mlxc.Scalar[int32](1)).All(-1)))
	require.Equal(t, anyTrue, read[bool](t, a.Greater(mlxc.Scalar[int32](4)).Any(-1)))
	require.Equal(t, largest, read[uint32](t, a.ArgMax(1)))
	require.Equal(t, []uint32{1, 1, 1, 0}, read[uint32](t, a.ArgMax(0)))
	require.Equal(t, []bool{false}, read[bool](t, a.All()))
	require.Equal(t, []bool{true}, read[bool](t, a.Any()))
	require.Equal(t, []int32{0}, read[int32](t, a.Prod()))

	none := mlxc.Zeros(mlxc.Bool, 0)
	require.Equal(t, []bool{true}, read[bool](t, none.All()))
	require.Equal(t, []bool{false}, read[bool](t, none.Any()))
	require.Equal(t, []float32{1}, floats(t, mlxc.Zeros(mlxc.Float32, 0).Prod()))
}

func TestSoftmaxAndLogSumExp(t *testing.T) {
	const rows, columns = 3, 5
	// Without subtraction of the maximum, the second row would overflow and the third underflow.
	x := []float32{0.1, -2, 3, 0, 1, 1000, 999, 998, 1000, 0, -1000, -1001, -999, -2000, -1000}
	a := mlxc.FromSlice(x, rows, columns)
	soft, lse := floats(t, a.Softmax(1)), floats(t, a.LogSumExp(1))
	precise := floats(t, a.SoftmaxPrecise(-1))
	for i := range rows {
		r := row(x, i, columns)
		largest := float64(math.Inf(-1))
		for _, v := range r {
			largest = max(largest, float64(v))
		}
		sum := 0.0
		for _, v := range r {
			sum += math.Exp(float64(v) - largest)
		}
		require.InDelta(t, largest+math.Log(sum), lse[i], 1e-6*math.Abs(largest))
		for j, v := range r {
			want := math.Exp(float64(v)-largest) / sum
			require.InDelta(t, want, row(soft, i, columns)[j], 1e-6)
			require.InDelta(t, want, row(precise, i, columns)[j], 1e-6)
		}
	}
	// Over two axes, and over all.
	b := mlxc.FromSlice(x[:4], 2, 2)
	require.InDelta(t, float64(floats(t, mlxc.FromSlice(x[:4]).LogSumExp(0))[0]), floats(t, b.LogSumExp())[0], 1e-6)
	require.InDeltaSlice(t, floats(t, mlxc.FromSlice(x[:4]).Softmax(0)), floats(t, b.Softmax(0, 1)), 1e-6)
	require.InDeltaSlice(t, floats(t, b.Softmax(0, 1)), floats(t, b.Softmax()), 1e-7)
	require.Equal(t, mlxc.Float32, mlxc.FromSlice([]int32{1, 2}).Softmax(0).DType())
}

// A sum of many small terms is inexact in float16 and bfloat16.
func TestSoftmaxPreciseOfHalves(t *testing.T) {
	const n = 5000
	a := mlxc.Zeros(mlxc.Float16, n)
	precise := read[float16.Float16](t, a.SoftmaxPrecise(0))
	require.InDelta(t, 1.0/n, precise[n-1].Float32(), 1e-7)
	require.Equal(t, mlxc.Float16, a.SoftmaxPrecise(0).DType())
	require.Equal(t, mlxc.Float16, a.Softmax(0).DType())
}

func TestCumSum(t *testing.T) {
	x := []int32{1, -2, 3, 4, 5, -6}
	a := mlxc.FromSlice(x, 2, 3)
	require.Equal(t, []int32{1, -1, 2, 4, 9, 3}, read[int32](t, a.CumSum(1)))
	require.Equal(t, []int32{1, -2, 3, 5, 3, -3}, read[int32](t, a.CumSum(0)))
	require.Equal(t, []int32{1, 1, 2}, read[int32](t, mlxc.FromSlice([]bool{true, false, true}).CumSum(0)))
}

// MLX's CPU backend divides by the number of elements in some of these.
func TestOperationsOnEmptyArraysAreEmpty(t *testing.T) {
	none, nowhere := mlxc.Zeros(mlxc.Float32, 2, 0), mlxc.Zeros(mlxc.Int32, 2, 0)
	for name, a := range map[string]*mlxc.Array{
		"softmax":                none.Softmax(1),
		"cumsum 0":               none.CumSum(0),
		"cumsum 1":               none.CumSum(1),
		"sort":                   none.Sort(1),
		"along axis":             none.TakeAlongAxis(nowhere, 1),
		"scatter add":            none.ScatterAdd(mlxc.FromSlice([]int32{1, 0}), none, 0),
		"scatter add along axis": none.ScatterAddAlongAxis(nowhere, none, 0),
		"slice update":           none.SliceUpdate(none, []int{0, 0}, []int{2, 0}, nil),
		"tril":                   none.Tril(0),
	} {
		require.Equal(t, []int{2, 0}, a.Shape(), name)
		require.Empty(t, floats(t, a), name)
	}
	require.Empty(t, read[uint32](t, none.ArgSort(0)))
	require.Empty(t, read[int32](t, mlxc.Zeros(mlxc.Bool, 0).CumSum(0)))
	x := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	require.Equal(t, []float32{1, 2, 3, 4}, floats(t,
		x.ScatterAdd(mlxc.FromSlice([]int32{}), mlxc.Zeros(mlxc.Float32, 0, 2), 0)))
	require.Empty(t, floats(t, x.Take(mlxc.FromSlice([]int32{}), 1)))
}

// A sum over MLX's view of an empty diagonal runs for many seconds.
func TestTraceOfAnEmptyDiagonal(t *testing.T) {
	x := mlxc.Zeros(mlxc.Float32, 1, 2, 4, 0)
	for name, sum := range map[string]*mlxc.Array{
		"trace": x.Trace(0, 1, 3), "outside": x.Trace(7, -3, -1), "sum": x.Diagonal(0, 1, 3).Sum(-1),
	} {
		require.Equal(t, "array([[0, 0, 0, 0]], dtype=float32)", sum.String(), name)
	}
}
