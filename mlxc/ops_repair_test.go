package mlxc_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Results of LUFactor behave like other arrays: operations read only their elements, and allocate no more memory.
func TestLUFactorResults(t *testing.T) {
	testdevice.CPUOnly(t, "uses operations that MLX has for CPUs alone")
	for _, shape := range [][]int{{1, 1}, {1, 4}, {4, 1}, {5, 3}, {3, 5}, {64, 64}, {2, 3, 7, 7}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			a := normal(1, shape...)
			lu, pivots := a.LUFactor()
			require.NoError(t, mlxc.Eval(lu, pivots))
			want := floats(t, lu)
			before := mlxc.ActiveMemory()
			twice := lu.MulScalar(2)
			require.NoError(t, mlxc.Eval(twice))
			require.LessOrEqual(t, mlxc.ActiveMemory()-before, 4*a.Size()+4096)
			for i, v := range floats(t, twice) {
				require.Equal(t, 2*want[i], v)
			}
			// The factorization and its use in one evaluation, where MLX may work in place; and inside a transform,
			// which keeps the graph.
			lazy, _ := a.LUFactor()
			abs := lazy.Abs()
			lazy.Free()
			traced, _, err := mlxc.JVP(single(func(x *mlxc.Array) *mlxc.Array {
				lu, _ := a.LUFactor()
				require.NoError(t, mlxc.Eval(lu))
				return x.Mul(lu.Abs())
			}), arrays{mlxc.Scalar[float32](1)}, arrays{mlxc.Scalar[float32](1)})
			require.NoError(t, err)
			for _, r := range (arrays{abs, traced[0]}) {
				for i, v := range floats(t, r) {
					require.Equal(t, float32(math.Abs(float64(want[i]))), v)
				}
			}
		})
	}
}

// Sums of many float32 elements do not stop growing at 2²⁴.
func TestLongSums(t *testing.T) {
	testdevice.CPUOnly(t, "other devices add partial sums")
	const n = 1<<24 + 1<<23
	ones := mlxc.Ones(mlxc.Float32, n)
	dense := ones.MulScalar(1).Add(mlxc.Zeros(mlxc.Float32, n))
	for name, x := range map[string]*mlxc.Array{
		"broadcast": ones, "row-major": dense, "column-major": dense.Reshape(-1, 4).Transpose(),
		"odd": dense.Index(mlxc.Range(3, mlxc.End)),
	} {
		size := float32(x.Size())
		require.Equal(t, []float32{size}, floats(t, x.Sum()), name)
		require.InDelta(t, 1, floats(t, x.Mean())[0], 1e-6, name)
		require.InDelta(t, 0, floats(t, x.Var())[0], 1e-6, name)
		require.InEpsilon(t, math.Sqrt(float64(size)), floats(t, x.Norm())[0], 1e-6, name)
	}
	rows := dense.Reshape(2, -1)
	require.Equal(t, []float32{n / 2, n / 2}, floats(t, rows.Sum(1)))
	require.Equal(t, []int{2, 1}, rows.SumKeepDims(1).Shape())
	_, grads, err := mlxc.VJP(single(func(a *mlxc.Array) *mlxc.Array { return a.Mean() }), arrays{dense},
		arrays{mlxc.Scalar[float32](n)})
	require.NoError(t, err)
	require.Equal(t, []float32{1, 1}, floats(t, grads[0].Index(mlxc.Range(0, 2))))
	short := normal(1, 1<<20+7)
	require.InDelta(t, wide(t, short.AsType(mlxc.Float64).Sum())[0], wide(t, short.Sum())[0], 1e-2)
}

// MLX's functions that use the factorization of LUFactor return correct results.
func TestLUFactorInside(t *testing.T) {
	testdevice.CPUOnly(t, "uses operations that MLX has for CPUs alone")
	a := mlxtest.Dominant(3, 40, 40)
	p, l, u := a.LU()
	ok, err := mlxc.Item[bool](l.Take(p, 0).MatMul(u).AllClose(a, mlxc.Tolerance{Relative: 1e-3, Absolute: 1e-4}))
	require.NoError(t, err)
	require.True(t, ok)
	_, log := a.SlogDet()
	_, logInverse := a.Inv().SlogDet()
	require.InDelta(t, 0, floats(t, log.Add(logInverse))[0], 1e-3)
}

// Arrays with a last axis of size 1 and any stride.
func TestViewAsSmallerElements(t *testing.T) {
	one := mlxc.Scalar[float32](1.2345)
	for name, a := range map[string]*mlxc.Array{
		"full":           mlxc.Full(mlxc.Float32, one, 1, 1),
		"broadcast":      one.BroadcastTo(1),
		"of rows":        mlxc.FromSlice([]float32{1, 2, 3}, 3, 1).BroadcastTo(3, 1),
		"transposed":     mlxc.FromSlice([]float32{1, 2, 3}, 1, 3).Transpose(),
		"column":         mlxc.FromSlice([]float32{1, 2, 3}, 3, 1),
		"square":         mlxc.FromSlice([]float32{1, 2, 3, 4}, 4, 1),
		"column-major":   mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3).Transpose().ExpandDims(-1),
		"permuted":       mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 1, 2, 3).Transpose(2, 1, 0),
		"column of more": counting(3, 5).Index(mlxc.All, mlxc.Range(2, 3)),
		"backwards":      counting(4, 1).Index(mlxc.All.Step(-1)),
		"rows":           counting(2, 3),
		"spread rows":    counting(3).BroadcastTo(2, 3),
		"spread":         one.BroadcastTo(2, 3),
	} {
		t.Run(name, func(t *testing.T) {
			var want []uint8
			for _, v := range floats(t, a) {
				want = binary.LittleEndian.AppendUint32(want, math.Float32bits(v))
			}
			bytes := a.View(mlxc.Uint8)
			got, err := mlxc.ToSlice[uint8](bytes)
			require.NoError(t, err)
			require.Equal(t, want, got)

			// Operations that change the memory order of elements.
			shape := bytes.Shape()
			n := len(shape)
			reversed := make([]int, n)
			for i := range shape {
				reversed[i] = shape[n-1-i]
			}
			columnMajor := mlxc.Arange(mlxc.Uint8, 0, float64(len(want)), 1).Reshape(reversed...).Transpose()
			order, err := mlxc.ToSlice[uint8](columnMajor)
			require.NoError(t, err)
			sums, err := mlxc.ToSlice[uint8](a.View(mlxc.Uint8).Add(columnMajor))
			require.NoError(t, err)
			for i, s := range sums {
				require.Equal(t, want[i]+order[i], s)
			}

			halves, err := mlxc.ToSlice[uint16](a.View(mlxc.Uint16))
			require.NoError(t, err)
			for i, h := range halves {
				require.Equal(t, binary.LittleEndian.Uint16(want[2*i:]), h)
			}
			back := bytes.View(mlxc.Float32)
			require.Equal(t, a.Shape(), back.Shape())
			require.Equal(t, floats(t, a), floats(t, back))
		})
	}
}

// On CPUs a division of integers by 0 ends the process.
func TestDivisorsThatAreViews(t *testing.T) {
	testdevice.CPUOnly(t, "uses operations that MLX has for CPUs alone")
	b := mlxc.Full(mlxc.Float16, mlxc.Scalar[float32](1), 1, 1).View(mlxc.Uint8) // 0, 60
	for want, f := range map[uint8]func(a, b *mlxc.Array) *mlxc.Array{
		40: (*mlxc.Array).Remainder,
		1:  (*mlxc.Array).FloorDivide,
	} {
		got, err := mlxc.ToSlice[uint8](f(mlxc.Full(mlxc.Uint8, mlxc.Scalar[uint8](100), 1), b))
		require.NoError(t, err)
		require.Equal(t, []uint8{0, want}, got)
	}
}
