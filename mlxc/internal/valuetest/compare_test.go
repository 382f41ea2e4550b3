package valuetest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func init() {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name string
		got  func(*mlxc.Array) *mlxc.Array
		want func(x float64) bool
	}{
		{"mlx_isnan", (*mlxc.Array).IsNaN, math.IsNaN},
		{"mlx_isinf", (*mlxc.Array).IsInf, func(x float64) bool { return math.IsInf(x, 0) }},
		{"mlx_isposinf", (*mlxc.Array).IsPosInf, func(x float64) bool { return math.IsInf(x, 1) }},
		{"mlx_isneginf", (*mlxc.Array).IsNegInf, func(x float64) bool { return math.IsInf(x, -1) }},
		{"mlx_isfinite", (*mlxc.Array).IsFinite, func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }},
	} {
		value(c.name, func(t *testing.T) {
			x := []float64{0, nan, -1, inf, 7, -inf}
			for d := range floatDTypes {
				got := read[bool](t, c.got(mlxc.FromSlice(x, 2, 3).AsType(d).Transpose()).Transpose())
				for i, g := range got {
					require.Equal(t, c.want(x[i]), g, "%v %g", d, x[i])
				}
			}
			require.Equal(t, []bool{c.want(0), c.want(5)}, read[bool](t, c.got(mlxc.FromSlice([]int32{0, 5}))))
			// A complex number is NaN, or infinite, if one of its parts is.
			z := mlxc.FromSlice([]complex64{complex(float32(nan), 1), complex(1, float32(nan)), 1i})
			require.Equal(t, []bool{c.want(nan), c.want(nan), c.want(0)}, read[bool](t, c.got(z)))
		})
	}

	undefined, infinity := float32(nan), float32(inf)
	a := mlxc.FromSlice([]float32{1, 1, 1e-9, undefined, infinity, infinity, -infinity, 100, 1})
	b := mlxc.FromSlice([]float32{1 + 1e-6, 1 + 1e-3, 0, undefined, infinity, -infinity, -infinity, 101, undefined})
	value("mlx_isclose", func(t *testing.T) {
		require.Equal(t, []bool{true, false, true, false, true, false, true, false, false},
			read[bool](t, a.IsClose(b, mlxc.Tolerance{})))
		require.Equal(t, []bool{true, true, true, true, true, false, true, false, false},
			read[bool](t, a.IsClose(b, mlxc.Tolerance{Relative: 1e-2 * 0.98, EqualNaN: true})))
		require.Equal(t, []bool{true, true, true, false, true, false, true, true, false},
			read[bool](t, a.IsClose(b, mlxc.Tolerance{Absolute: 1})))
		// The tolerance is relative to the second operand.
		p, q := mlxc.Scalar[float32](1), mlxc.Scalar[float32](2)
		require.Equal(t, []bool{true}, read[bool](t, p.IsClose(q, mlxc.Tolerance{Relative: 0.6})))
		require.Equal(t, []bool{false}, read[bool](t, q.IsClose(p, mlxc.Tolerance{Relative: 0.6})))
		// Differences of unsigned elements do not wrap around. Booleans compare as 0 and 1.
		u, v := mlxc.FromSlice([]uint8{1, 3, 1}), mlxc.FromSlice([]uint8{3, 1, 9})
		require.Equal(t, []bool{true, true, false}, read[bool](t, u.IsClose(v, mlxc.Tolerance{Absolute: 2})))
		require.Equal(t, []bool{true, false},
			read[bool](t, mlxc.FromSlice([]bool{true, false}).IsClose(mlxc.Scalar(true), mlxc.Tolerance{})))
		z := mlxc.FromSlice([]complex64{3 + 4i, 3 + 4i})
		require.Equal(t, []bool{true, false},
			read[bool](t, z.IsClose(mlxc.FromSlice([]complex64{3 + 4.4i, 3.6 + 4i}), mlxc.Tolerance{Absolute: 0.5})))
		require.Equal(t, []int{2, 3},
			mlxc.Zeros(mlxc.Float16, 2, 1).IsClose(mlxc.Zeros(mlxc.Float32, 3), mlxc.Tolerance{}).Shape())
	})
	value("mlx_allclose", func(t *testing.T) {
		one := func(v bool, got *mlxc.Array) {
			t.Helper()
			require.Equal(t, []int{}, got.Shape())
			require.Equal(t, []bool{v}, read[bool](t, got))
		}
		one(false, a.AllClose(b, mlxc.Tolerance{}))
		one(true, a.Index(mlxc.Range(0, 2)).AllClose(b.Index(mlxc.Range(0, 2)), mlxc.Tolerance{Relative: 1e-2}))
		one(false, a.Index(mlxc.Range(0, 2)).AllClose(b.Index(mlxc.Range(0, 2)), mlxc.Tolerance{}))
		one(false, a.AllClose(a, mlxc.Tolerance{}))
		one(true, a.AllClose(a, mlxc.Tolerance{EqualNaN: true}))
		one(true, mlxc.FromSlice([]int64{1, 2}).AllClose(mlxc.FromSlice([]uint8{1, 2}), mlxc.Tolerance{}))
		one(true, mlxc.Zeros(mlxc.Float32, 0).AllClose(mlxc.Zeros(mlxc.Float32, 0), mlxc.Tolerance{}))
	})
	value("mlx_array_equal", func(t *testing.T) {
		n := mlxc.FromSlice([]float64{1, nan}).AsType(mlxc.Float32)
		for _, c := range []struct {
			a, b     *mlxc.Array
			equalNaN bool
			want     bool
		}{
			{counting(2, 3), counting(3, 2), false, false},
			{counting(2, 3), counting(2, 3).AsType(mlxc.Int64), false, true},
			{counting(2, 3), counting(2, 3).AddScalar(1e-6), false, false},
			{counting(3, 2).Transpose(), counting(3, 2).Transpose().Contiguous(), false, true},
			{counting(1), counting(1, 1), false, false},
			{n, n, false, false},
			{n, n, true, true},
		} {
			got := c.a.ArrayEqual(c.b, c.equalNaN)
			require.Equal(t, []int{}, got.Shape())
			require.Equal(t, []bool{c.want}, read[bool](t, got), "%v and %v", c.a, c.b)
		}
	})
	value("mlx_where", func(t *testing.T) {
		cond := mlxc.FromSlice([]float32{0, 2, -1}) // nonzero is true
		for _, d := range mlxc.DTypes() {
			got := mlxc.Where(cond, mlxc.FromSlice([]int8{1, 0}, 2, 1).AsType(d), mlxc.Zeros(mlxc.Bool))
			require.Equal(t, d, got.DType())
			require.Equal(t, []bool{false, true, true, false, false, false}, read[bool](t, got.AsType(mlxc.Bool)), d)
			require.Equal(t, []int{2, 3}, got.Shape())
		}
		require.Equal(t, []float64{1.5, 7},
			wide(t, mlxc.Where(mlxc.FromSlice([]bool{true, false}), mlxc.Scalar[float32](1.5), mlxc.Scalar[int32](7))))
	})
	value("mlx_nan_to_num", func(t *testing.T) {
		most := map[mlxc.DType]float64{
			mlxc.Float16: 65504, mlxc.BFloat16: math.Ldexp(255, 120),
			mlxc.Float32: math.MaxFloat32, mlxc.Float64: math.MaxFloat64,
		}
		x := mlxc.FromSlice([]float64{nan, inf, -inf, 1.5})
		for d, most := range most {
			got := x.AsType(d).NaNToNum(mlxc.NaNToNumConfig{})
			require.Equal(t, d, got.DType())
			require.Equal(t, []float64{0, most, -most, 1.5}, wide(t, got), d)
			least := float32(-3)
			got = x.AsType(d).NaNToNum(mlxc.NaNToNumConfig{NaN: 2, NegInf: &least, PosInf: new(float32(0))})
			require.Equal(t, []float64{2, 0, -3, 1.5}, wide(t, got), d)
		}
		require.Equal(t, []int32{1, 2}, read[int32](t, mlxc.FromSlice([]int32{1, 2}).NaNToNum(mlxc.NaNToNumConfig{})))
	})
	value("mlx_clip", func(t *testing.T) {
		x := mlxc.FromSlice([]int32{-5, 0, 5, 9}, 2, 2)
		low, high := mlxc.FromSlice([]int32{-1, 1}), mlxc.FromSlice([]int32{7, 8}, 2, 1)
		require.Equal(t, []int32{-1, 1, 5, 8}, read[int32](t, x.ClipTo(low, high)))
		require.Equal(t, []int32{-1, 1, 5, 9}, read[int32](t, x.ClipTo(low, nil)))
		require.Equal(t, []int32{-5, 0, 5, 8}, read[int32](t, x.ClipTo(nil, high)))
		require.Equal(t, []int32{3, 3, 3, 3}, read[int32](t, x.ClipTo(mlxc.Scalar[int32](6), mlxc.Scalar[int32](3))))
		got := a.Index(mlxc.Range(2, 5)).ClipTo(mlxc.Scalar[float32](0), mlxc.Scalar[float32](1))
		closeTo(t, nan, wide(t, got)[1], 0)
		require.Equal(t, mlxc.Float32, x.ClipTo(mlxc.Scalar[float32](0.5), nil).DType())
	})
}
