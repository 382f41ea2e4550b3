package valuetest

import (
	"math"
	"math/cmplx"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// operandsOf returns two operands of dtype d with shapes (3,4) and (1,4), and their elements after broadcasting.
// Neither operand is contiguous.
func operandsOf(t *testing.T, d mlxc.DType, from, to float64) (a, b *mlxc.Array, x, y []float64) {
	t.Helper()
	a = steps(mlxc.Float64, from, to, 12).Reshape(4, 3).Transpose()
	b = mlxc.Linspace(mlxc.Float64, to, from+0.3, 8).Reshape(1, 8).Index(mlxc.All, mlxc.All.Step(2))
	if !d.IsFloating() {
		a, b = a.Round(), b.Round()
	}
	a, b = a.AsType(d), b.AsType(d)
	both := mlxc.BroadcastArrays(a, b)
	return a, b, wide(t, both[0]), wide(t, both[1])
}

// Binary functions with broadcast operands, in every dtype that they support.
func init() {
	type binary = func(a, b *mlxc.Array) *mlxc.Array
	integers := []mlxc.DType{
		mlxc.Int8, mlxc.Int16, mlxc.Int32, mlxc.Int64, mlxc.Uint8, mlxc.Uint16, mlxc.Uint32,
		mlxc.Uint64,
	}
	floored := func(x, y float64) float64 { return x - y*math.Floor(x/y) }
	for _, c := range []struct {
		name     string
		got      binary
		want     func(x, y float64) float64
		from, to float64
		integers bool // integer operands keep their dtype; otherwise the result is float32
		complex  func(x, y complex128) complex128
	}{
		{
			"mlx_add", (*mlxc.Array).Add, func(x, y float64) float64 { return x + y }, 1, 9, true,
			func(x, y complex128) complex128 { return x + y },
		},
		{
			"mlx_subtract", (*mlxc.Array).Sub, func(x, y float64) float64 { return x - y }, 1, 9, true,
			func(x, y complex128) complex128 { return x - y },
		},
		{
			"mlx_multiply", (*mlxc.Array).Mul, func(x, y float64) float64 { return x * y }, 1, 9, true,
			func(x, y complex128) complex128 { return x * y },
		},
		{
			"mlx_divide", (*mlxc.Array).Div, func(x, y float64) float64 { return x / y }, 1, 9, false,
			func(x, y complex128) complex128 { return x / y },
		},
		{"mlx_power", (*mlxc.Array).Pow, math.Pow, 1, 4, true, cmplx.Pow},
		{"mlx_maximum", (*mlxc.Array).Maximum, math.Max, 1, 9, true, nil},
		{"mlx_minimum", (*mlxc.Array).Minimum, math.Min, 1, 9, true, nil},
		{"mlx_remainder", (*mlxc.Array).Remainder, floored, 1, 9, true, nil},
		{
			"mlx_floor_divide", (*mlxc.Array).FloorDivide, func(x, y float64) float64 { return math.Floor(x / y) }, 1, 9,
			true, nil,
		},
		{"mlx_arctan2", (*mlxc.Array).Arctan2, math.Atan2, -4, 4, false, nil},
		{
			"mlx_logaddexp", (*mlxc.Array).LogAddExp,
			func(x, y float64) float64 { return math.Log(math.Exp(x) + math.Exp(y)) }, -4, 4, false, func(x,
				y complex128,
			) complex128 {
				return cmplx.Log(cmplx.Exp(x) + cmplx.Exp(y))
			},
		},
	} {
		value(c.name, func(t *testing.T) {
			dtypes := []mlxc.DType{mlxc.Float16, mlxc.BFloat16, mlxc.Float32, mlxc.Float64}
			if c.from > 0 {
				dtypes = append(dtypes, integers...)
			}
			for _, d := range dtypes {
				a, b, x, y := operandsOf(t, d, c.from, c.to)
				got := c.got(a, b)
				require.Equal(t, []int{3, 4}, got.Shape())
				off := floatDTypes[mlxc.Float32]
				switch {
				case d.IsFloating():
					require.Equal(t, d, got.DType())
					off = 2 * floatDTypes[d]
				case c.integers:
					require.Equal(t, d, got.DType())
				default:
					require.Equal(t, mlxc.Float32, got.DType())
				}
				for i, v := range wide(t, got) {
					want := c.want(x[i], y[i])
					if want < 0 && d >= mlxc.Uint8 && d <= mlxc.Uint64 {
						want += math.Ldexp(1, 8*d.Size())
					}
					closeTo(t, want, v, off, "of the %v %g and %g", d, x[i], y[i])
				}
			}
			if c.complex == nil {
				return
			}
			x, y := []complex64{0.5 + 0.25i, -0.5 + 2i, 1.5}, []complex64{1 - 1i, 0.5i, -0.5 + 0.25i}
			for i, v := range read[complex64](t, c.got(mlxc.FromSlice(x), mlxc.FromSlice(y))) {
				want := c.complex(complex128(x[i]), complex128(y[i]))
				require.InDelta(t, 0, cmplx.Abs(want-complex128(v)), 1e-5, "of %v and %v", x[i], y[i])
			}
		})
	}

	// Comparisons. NaN is not equal to, less than or greater than any value.
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name string
		got  binary
		want func(x, y float64) bool
	}{
		{"mlx_equal", (*mlxc.Array).Equal, func(x, y float64) bool { return x == y }},
		{"mlx_not_equal", (*mlxc.Array).NotEqual, func(x, y float64) bool { return x != y }},
		{"mlx_less", (*mlxc.Array).Less, func(x, y float64) bool { return x < y }},
		{"mlx_less_equal", (*mlxc.Array).LessEqual, func(x, y float64) bool { return x <= y }},
		{"mlx_greater", (*mlxc.Array).Greater, func(x, y float64) bool { return x > y }},
		{"mlx_greater_equal", (*mlxc.Array).GreaterEqual, func(x, y float64) bool { return x >= y }},
		{"mlx_logical_and", (*mlxc.Array).LogicalAnd, func(x, y float64) bool { return x != 0 && y != 0 }},
		{"mlx_logical_or", (*mlxc.Array).LogicalOr, func(x, y float64) bool { return x != 0 || y != 0 }},
		{"mlx_logical_xor", (*mlxc.Array).LogicalXor, func(x, y float64) bool { return (x != 0) != (y != 0) }},
	} {
		value(c.name, func(t *testing.T) {
			for _, d := range mlxc.DTypes() {
				v := []float64{0, 1, 2, 3, 1, 0, 2}
				if d.IsFloating() {
					v = append(v, -1, nan, inf, -inf)
				}
				a := mlxc.FromSlice(v).AsType(d)
				got := c.got(a.ExpandDims(1), a)
				require.Equal(t, []int{len(v), len(v)}, got.Shape())
				for i, g := range read[bool](t, got) {
					x, y := v[i/len(v)], v[i%len(v)]
					if d == mlxc.Bool {
						x, y = math.Min(x, 1), math.Min(y, 1)
					}
					require.Equal(t, c.want(x, y), g, "%v %g and %g", d, x, y)
				}
			}
		})
	}
	value("mlx_logical_not", func(t *testing.T) {
		for _, d := range mlxc.DTypes() {
			require.Equal(t, []bool{true, false, false},
				read[bool](t, mlxc.FromSlice([]int8{0, 1, 3}).AsType(d).LogicalNot()), d)
		}
	})

	// Bitwise functions.
	for _, c := range []struct {
		name string
		got  binary
		want func(x, y int64) int64
	}{
		{"mlx_bitwise_and", (*mlxc.Array).BitwiseAnd, func(x, y int64) int64 { return x & y }},
		{"mlx_bitwise_or", (*mlxc.Array).BitwiseOr, func(x, y int64) int64 { return x | y }},
		{"mlx_bitwise_xor", (*mlxc.Array).BitwiseXor, func(x, y int64) int64 { return x ^ y }},
	} {
		value(c.name, func(t *testing.T) {
			for _, d := range integers {
				x, y := mlxc.FromSlice([]int64{0, 1, 5, 100, 127, -1}).AsType(d), mlxc.FromSlice([]int64{
					3, 12, 85,
					-2,
				}).AsType(d)
				got := c.got(x.ExpandDims(1), y)
				require.Equal(t, d, got.DType())
				a, b := read[int64](t, x.AsType(mlxc.Int64)), read[int64](t, y.AsType(mlxc.Int64))
				for i, g := range read[int64](t, got.AsType(mlxc.Int64)) {
					require.Equal(t, c.want(a[i/len(b)], b[i%len(b)]), g, "%v", d)
				}
			}
			p, q := mlxc.FromSlice([]bool{false, false, true, true}), mlxc.FromSlice([]bool{false, true, false, true})
			for i, g := range read[bool](t, c.got(p, q)) {
				require.Equal(t, c.want(int64(i/2), int64(i%2)) != 0, g)
			}
		})
	}
	value("mlx_bitwise_invert", func(t *testing.T) {
		require.Equal(t, []int32{-1, 0, -6}, read[int32](t, mlxc.FromSlice([]int32{0, -1, 5}).BitwiseInvert()))
		require.Equal(t, []uint8{255, 0, 250}, read[uint8](t, mlxc.FromSlice([]uint8{0, 255, 5}).BitwiseInvert()))
		require.Equal(t, []bool{true, false}, read[bool](t, mlxc.FromSlice([]bool{false, true}).BitwiseInvert()))
	})
	value("mlx_left_shift", func(t *testing.T) {
		counts := []int32{0, 1, 7, 8, 31, 32, 33, 64, math.MaxInt32, -1}
		n := mlxc.FromSlice(counts)
		var bytes []uint8
		var ints []int32
		for _, k := range counts {
			bytes, ints = append(bytes, 5<<uint32(k)), append(ints, -5<<uint32(k))
		}
		require.Equal(t, ints, read[int32](t, mlxc.Scalar[int32](-5).LeftShift(n)))
		require.Equal(t, bytes, read[uint8](t, mlxc.Scalar[uint8](5).LeftShift(n.AsType(mlxc.Uint8))))
		require.Equal(t, []uint64{1 << 63, 0},
			read[uint64](t, mlxc.Scalar[uint64](1).LeftShift(mlxc.FromSlice([]uint64{63, 1 << 40}))))
		require.Equal(t, []uint8{1, 2},
			read[uint8](t, mlxc.Scalar(true).LeftShift(mlxc.FromSlice([]bool{false, true}))))
	})
	value("mlx_right_shift", func(t *testing.T) {
		counts := []int32{0, 1, 7, 8, 31, 32, 33, 64, math.MaxInt32, -1}
		n := mlxc.FromSlice(counts)
		var bytes []uint8
		var down, up []int32
		for _, k := range counts {
			bytes, down, up = append(bytes, 200>>uint32(k)), append(down, -500>>uint32(k)), append(up, 500>>uint32(k))
		}
		require.Equal(t, down, read[int32](t, mlxc.Scalar[int32](-500).RightShift(n)))
		require.Equal(t, up, read[int32](t, mlxc.Scalar[int32](500).RightShift(n)))
		require.Equal(t, bytes, read[uint8](t, mlxc.Scalar[uint8](200).RightShift(n.AsType(mlxc.Uint8))))
		require.Equal(t, []uint64{1, 0},
			read[uint64](t, mlxc.Scalar[uint64](1<<63).RightShift(mlxc.FromSlice([]uint64{63, 1 << 40}))))
		require.Equal(t, []uint8{1, 0},
			read[uint8](t, mlxc.Scalar(true).RightShift(mlxc.FromSlice([]bool{false, true}))))
	})
}

// Binary functions of NaN and infinities.
func TestBinaryFunctionsOfNaNAndInfinity(t *testing.T) {
	testdevice.CPUOnly(t, "compares with float64 in Go, with tolerances for MLX's CPU backend")
	nan, inf := math.NaN(), math.Inf(1)
	a := mlxc.FromSlice([]float64{nan, 1, inf, -inf, -inf, 1000}).AsType(mlxc.Float32)
	b := mlxc.FromSlice([]float64{1, nan, -inf, -inf, 3, 1000}).AsType(mlxc.Float32)
	for name, c := range map[string]struct {
		got  *mlxc.Array
		want []float64
	}{
		"maximum":   {a.Maximum(b), []float64{nan, nan, inf, -inf, 3, 1000}},
		"minimum":   {a.Minimum(b), []float64{nan, nan, -inf, -inf, -inf, 1000}},
		"logaddexp": {a.LogAddExp(b), []float64{nan, nan, inf, -inf, 3, 1000 + math.Ln2}},
		"divide":    {a.Div(b), []float64{nan, nan, nan, nan, -inf, 1}},
		"arctan2":   {a.Arctan2(b), []float64{nan, nan, 3 * math.Pi / 4, -3 * math.Pi / 4, -math.Pi / 2, math.Pi / 4}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, got := range wide(t, c.got) {
				closeTo(t, c.want[i], got, 1e-6, i)
			}
		})
	}
}

func TestPromotion(t *testing.T) {
	testdevice.CPUOnly(t, "compares with float64 in Go, with tolerances for MLX's CPU backend")
	of := func(d mlxc.DType) *mlxc.Array { return mlxc.Ones(d, 2) }
	for _, c := range []struct{ a, b, want mlxc.DType }{
		{mlxc.Bool, mlxc.Uint8, mlxc.Uint8},
		{mlxc.Int8, mlxc.Uint8, mlxc.Int16},
		{mlxc.Int64, mlxc.Float16, mlxc.Float16},
		{mlxc.Float16, mlxc.BFloat16, mlxc.Float32},
		{mlxc.Float32, mlxc.Float64, mlxc.Float64},
		{mlxc.BFloat16, mlxc.Complex64, mlxc.Complex64},
	} {
		require.Equal(t, c.want, of(c.a).Add(of(c.b)).DType(), "%v and %v", c.a, c.b)
		require.Equal(t, c.want, of(c.b).Mul(of(c.a)).DType(), "%v and %v", c.b, c.a)
	}
}

func TestDivMod(t *testing.T) {
	testdevice.CPUOnly(t, "compares with float64 in Go, with tolerances for MLX's CPU backend")
	x, y := []int32{7, -7, 7, -7, 5, math.MinInt32}, []int32{2, 2, -2, -2, 0, -1}
	q, r := mlxc.FromSlice(x).DivMod(mlxc.FromSlice(y))
	require.Equal(t, []int32{3, -4, -4, 3, 0, math.MinInt32}, read[int32](t, q))
	require.Equal(t, []int32{1, 1, -1, -1, 0, 0}, read[int32](t, r))
	for _, d := range []mlxc.DType{mlxc.Float16, mlxc.Float32, mlxc.Float64} {
		q, r := mlxc.FromSlice([]float64{
			7.5, -7.5,
			7.5,
		}).AsType(d).DivMod(mlxc.FromSlice([]float64{2, 2, -2}).AsType(d))
		require.Equal(t, d, r.DType())
		require.Equal(t, []float64{3, -4, -4}, wide(t, q))
		require.Equal(t, []float64{1.5, 0.5, -0.5}, wide(t, r))
	}
}
