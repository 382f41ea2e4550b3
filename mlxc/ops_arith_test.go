package mlxc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func read[T mlxc.Element](t testing.TB, a *mlxc.Array) []T {
	t.Helper()
	return mlxtest.Read[T](t, a)
}

var wide = mlxtest.Wide

func TestAccuracyOfElementwiseFunctions(t *testing.T) {
	x := []float32{-3, -1.5, -0.75, -1e-6, 0, 1e-6, 0.3, 1, 2.5, 6}
	a := mlxc.FromSlice(x)
	for _, c := range []struct {
		name string
		got  *mlxc.Array
		want func(float64) float64
		off  float64 // absolute tolerance
	}{
		{"erf", a.Erf(), math.Erf, 1e-7},
		{"expm1", a.Expm1(), math.Expm1, 0},
		{"log1p", a.Log1p(), math.Log1p, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, got := range floats(t, c.got) {
				want := c.want(float64(x[i]))
				if math.IsNaN(want) {
					require.True(t, math.IsNaN(float64(got)))
					continue
				}
				require.InDelta(t, want, got, c.off+2e-6*math.Abs(want), "of %g", x[i])
			}
		})
	}
}

func floorDivide(a, b int64) (q, r int64) {
	if b == 0 {
		return 0, 0
	}
	q, r = a/b, a%b
	if r != 0 && (r < 0) != (b < 0) {
		q, r = q-1, r+b
	}
	return q, r
}

func TestFloorDivideAndRemainder(t *testing.T) {
	// Every pair of int8, including division by zero and of the minimum by −1: on a processor that traps, either would
	// end the process.
	var a, b, wantQ, wantR []int8
	for x := math.MinInt8; x <= math.MaxInt8; x++ {
		for y := math.MinInt8; y <= math.MaxInt8; y++ {
			q, r := floorDivide(int64(x), int64(y))
			a, b = append(a, int8(x)), append(b, int8(y))
			wantQ, wantR = append(wantQ, int8(q)), append(wantR, int8(r))
		}
	}
	x, y := mlxc.FromSlice(a), mlxc.FromSlice(b)
	require.Equal(t, wantQ, read[int8](t, x.FloorDivide(y)))
	require.Equal(t, wantR, read[int8](t, x.Remainder(y)))

	x, y = mlxc.FromSlice([]int32{math.MinInt32, 7, -7}), mlxc.FromSlice([]int32{-1, 0, 2})
	require.Equal(t, []int32{math.MinInt32, 0, -4}, read[int32](t, x.FloorDivide(y)))
	require.Equal(t, []int32{0, 0, 1}, read[int32](t, x.Remainder(y)))
	u := mlxc.FromSlice([]uint64{math.MaxUint64, 5, math.MaxUint64})
	v := mlxc.FromSlice([]uint64{3, 0, math.MaxUint64})
	require.Equal(t, []uint64{math.MaxUint64 / 3, 0, 1}, read[uint64](t, u.FloorDivide(v)))
	require.Equal(t, []uint64{0, 0, 0}, read[uint64](t, u.Remainder(v)))

	f, g := []float32{7, -7, 7.5, -0.5, 1}, []float32{2, 2, -2, 2, 0}
	p, q := mlxc.FromSlice(f), mlxc.FromSlice(g)
	for i, got := range floats(t, p.FloorDivide(q)) {
		require.Equal(t, float32(math.Floor(float64(f[i]/g[i]))), got)
	}
	for i, got := range floats(t, p.Remainder(q))[:4] {
		require.Equal(t, f[i]-g[i]*float32(math.Floor(float64(f[i]/g[i]))), got)
	}
}

func TestClip(t *testing.T) {
	nan := float32(math.NaN())
	a := mlxc.FromSlice([]float32{-3, -1, 0.5, 2, 9, nan})
	got := floats(t, a.Clip(-1, 2))
	require.Equal(t, []float32{-1, -1, 0.5, 2, 2}, got[:5])
	require.NotEqual(t, got[5], got[5])
	require.Equal(t, []float32{-3, -1, 0, 0, 0}, floats(t, a.Clip(math.Inf(-1), 0))[:5])
	require.Equal(t, mlxc.BFloat16, a.AsType(mlxc.BFloat16).Clip(-1, 2).DType())
}
