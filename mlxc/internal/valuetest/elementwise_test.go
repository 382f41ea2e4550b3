package valuetest

import (
	"math"
	"math/cmplx"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// floatDTypes maps each real floating-point dtype to the allowed error of a function: absolute for results below 1,
// relative above. MLX computes some functions of float64 in single precision.
var floatDTypes = map[mlxc.DType]float64{
	mlxc.Float16: 1.0 / 1024, mlxc.BFloat16: 1.0 / 128, mlxc.Float32: 4e-6, mlxc.Float64: 4e-6,
}

// closeTo requires |got − want| ≤ off · max(1, |want|). NaN and infinities must be equal.
func closeTo(t testing.TB, want, got, off float64, message ...any) {
	t.Helper()
	if math.IsNaN(want) || math.IsInf(want, 0) {
		if !math.IsNaN(want) || !math.IsNaN(got) {
			require.Equal(t, want, got, message...) //nolint:testifylint // infinities are equal or not
		}
		return
	}
	require.InDelta(t, want, got, off*math.Max(1, math.Abs(want)), message...)
}

// steps returns n numbers from `from` to `to` in an array of shape (2, n/2). The array is a transposed view, so it is
// not contiguous.
func steps(d mlxc.DType, from, to float64, n int) *mlxc.Array {
	return mlxc.Linspace(mlxc.Float64, from, to, n).Reshape(n/2, 2).Transpose().AsType(d)
}

// Unary functions in every dtype, compared with Go's packages math and math/cmplx.
func init() {
	const (
		becomesFloat = iota // the result for integers is float32
		staysInteger
	)
	for _, c := range []struct {
		name     string
		got      func(*mlxc.Array) *mlxc.Array
		want     func(float64) float64
		complex  func(complex128) complex128
		from, to float64
		integers int
	}{
		{"mlx_exp", (*mlxc.Array).Exp, math.Exp, cmplx.Exp, -8, 8, becomesFloat},
		{"mlx_expm1", (*mlxc.Array).Expm1, math.Expm1, nil, -4, 4, becomesFloat},
		{"mlx_log", (*mlxc.Array).Log, math.Log, cmplx.Log, 0.01, 50, becomesFloat},
		{
			"mlx_log2", (*mlxc.Array).Log2, math.Log2, func(z complex128) complex128 { return cmplx.Log(z) / math.Ln2 },
			0.01, 50, becomesFloat,
		},
		{"mlx_log10", (*mlxc.Array).Log10, math.Log10, cmplx.Log10, 0.01, 50, becomesFloat},
		{
			"mlx_log1p", (*mlxc.Array).Log1p, math.Log1p, func(z complex128) complex128 { return cmplx.Log(1 + z) }, -0.9,
			50, becomesFloat,
		},
		{"mlx_sqrt", (*mlxc.Array).Sqrt, math.Sqrt, cmplx.Sqrt, 0, 1000, becomesFloat},
		{
			"mlx_rsqrt", (*mlxc.Array).Rsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) },
			func(z complex128) complex128 { return 1 / cmplx.Sqrt(z) }, 0.1, 1000, becomesFloat,
		},
		{
			"mlx_sigmoid", (*mlxc.Array).Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, nil, -9, 9,
			becomesFloat,
		},
		{"mlx_erf", (*mlxc.Array).Erf, math.Erf, nil, -3, 3, becomesFloat},
		{"mlx_erfinv", (*mlxc.Array).ErfInv, math.Erfinv, nil, -0.99, 0.99, becomesFloat},
		{"mlx_sin", (*mlxc.Array).Sin, math.Sin, cmplx.Sin, -4, 4, becomesFloat},
		{"mlx_cos", (*mlxc.Array).Cos, math.Cos, cmplx.Cos, -4, 4, becomesFloat},
		{"mlx_tan", (*mlxc.Array).Tan, math.Tan, cmplx.Tan, -1.3, 1.3, becomesFloat},
		{"mlx_arcsin", (*mlxc.Array).Arcsin, math.Asin, cmplx.Asin, -1, 1, becomesFloat},
		{"mlx_arccos", (*mlxc.Array).Arccos, math.Acos, cmplx.Acos, -1, 1, becomesFloat},
		{"mlx_arctan", (*mlxc.Array).Arctan, math.Atan, cmplx.Atan, -9, 9, becomesFloat},
		{"mlx_sinh", (*mlxc.Array).Sinh, math.Sinh, cmplx.Sinh, -4, 4, becomesFloat},
		{"mlx_cosh", (*mlxc.Array).Cosh, math.Cosh, cmplx.Cosh, -4, 4, becomesFloat},
		{"mlx_tanh", (*mlxc.Array).Tanh, math.Tanh, cmplx.Tanh, -3, 3, becomesFloat},
		{"mlx_arcsinh", (*mlxc.Array).Arcsinh, math.Asinh, nil, -50, 50, becomesFloat},
		{"mlx_arccosh", (*mlxc.Array).Arccosh, math.Acosh, nil, 1, 50, becomesFloat},
		{"mlx_arctanh", (*mlxc.Array).Arctanh, math.Atanh, nil, -0.95, 0.95, becomesFloat},
		{
			"mlx_degrees", (*mlxc.Array).Degrees, func(x float64) float64 { return x * 180 / math.Pi }, nil, -7, 7,
			becomesFloat,
		},
		{
			"mlx_radians", (*mlxc.Array).Radians, func(x float64) float64 { return x * math.Pi / 180 }, nil, -400, 400,
			becomesFloat,
		},
		{
			"mlx_reciprocal", (*mlxc.Array).Reciprocal, func(x float64) float64 { return 1 / x },
			func(z complex128) complex128 { return 1 / z }, 0.25, 9, becomesFloat,
		},
		{
			"mlx_abs", (*mlxc.Array).Abs, math.Abs, func(z complex128) complex128 { return complex(cmplx.Abs(z), 0) }, -9,
			9, staysInteger,
		},
		{
			"mlx_square", (*mlxc.Array).Square, func(x float64) float64 { return x * x },
			func(z complex128) complex128 { return z * z }, -9, 9, staysInteger,
		},
		{
			"mlx_negative", (*mlxc.Array).Neg, func(x float64) float64 { return -x },
			func(z complex128) complex128 { return -z }, -9, 9, staysInteger,
		},
		{"mlx_sign", (*mlxc.Array).Sign, func(x float64) float64 {
			if x == 0 {
				return 0
			}
			return math.Copysign(1, x)
		}, func(z complex128) complex128 { return z / complex(cmplx.Abs(z), 0) }, -9, 9, staysInteger},
		{"mlx_floor", (*mlxc.Array).Floor, math.Floor, nil, -9, 9, staysInteger},
		{"mlx_ceil", (*mlxc.Array).Ceil, math.Ceil, nil, -9, 9, staysInteger},
		{"mlx_trunc", (*mlxc.Array).Trunc, math.Trunc, nil, -9, 9, staysInteger},
	} {
		value(c.name, func(t *testing.T) {
			const n = 102
			for d, off := range floatDTypes {
				x := steps(d, c.from, c.to, n)
				y := c.got(x)
				require.Equal(t, d, y.DType())
				require.Equal(t, []int{2, n / 2}, y.Shape())
				in := wide(t, x)
				for i, got := range wide(t, y) {
					closeTo(t, c.want(in[i]), got, off, "of the %v %g", d, in[i])
				}
			}
			x := steps(mlxc.Int32, math.Ceil(c.from), math.Floor(c.to), n)
			y := c.got(x)
			if c.integers == staysInteger {
				require.Equal(t, mlxc.Int32, y.DType())
			} else {
				require.Equal(t, mlxc.Float32, y.DType())
			}
			in := wide(t, x)
			for i, got := range wide(t, y) {
				closeTo(t, c.want(in[i]), got, 4e-6, "of the int32 %g", in[i])
			}
			if c.complex == nil {
				return
			}
			z := []complex64{0.5 + 0.25i, -0.5 + 2i, 1.5 - 0.5i, -1 - 1i, 0.25i}
			got := read[complex64](t, c.got(mlxc.FromSlice(z)).AsType(mlxc.Complex64))
			for i, z := range z {
				want := c.complex(complex128(z))
				require.InDelta(t, real(want), real(got[i]), 1e-5*math.Max(1, cmplx.Abs(want)), "real part of %v", z)
				require.InDelta(t, imag(want), imag(got[i]), 1e-5*math.Max(1, cmplx.Abs(want)), "imaginary part of %v",
					z)
			}
		})
	}
	value("mlx_round", func(t *testing.T) {
		for d, off := range floatDTypes {
			x := steps(d, -9, 9, 102)
			whole, tenths, tens := x.Round(), x.RoundTo(1), x.MulScalar(10).RoundTo(-1)
			require.Equal(t, d, tenths.DType())
			in := wide(t, x)
			for i, got := range wide(t, whole) {
				require.InDelta(t, math.RoundToEven(in[i]), got, 0, "of the %v %g", d, in[i])
			}
			for i, got := range wide(t, tenths) {
				closeTo(t, math.RoundToEven(in[i]*10)/10, got, off, "of the %v %g", d, in[i])
			}
			in = wide(t, x.MulScalar(10))
			for i, got := range wide(t, tens) {
				closeTo(t, math.RoundToEven(in[i]/10)*10, got, off, "of the %v %g", d, in[i])
			}
		}
		require.Equal(t, []float32{0, 2, 2, -2, -0},
			floats(t, mlxc.FromSlice([]float32{0.5, 1.5, 2.5, -1.5, -0.5}).Round()))
		require.Equal(t, []int32{10, 20, 20, -20}, read[int32](t, mlxc.FromSlice([]int32{14, 15, 25, -15}).RoundTo(-1)))
		require.Equal(t, []int32{14}, read[int32](t, mlxc.FromSlice([]int32{14}).Round()))
		require.Equal(t, []complex64{2 + 2i}, read[complex64](t, mlxc.FromSlice([]complex64{1.5 + 2.5i}).Round()))
	})
}

// Unary functions at the limits of their domains and beyond them.
func TestUnaryFunctionsAtLimitsOfDomains(t *testing.T) {
	testdevice.CPUOnly(t, "compares with float64 in Go, with tolerances for MLX's CPU backend")
	nan, inf := math.NaN(), math.Inf(1)
	for name, c := range map[string]struct {
		got  func(*mlxc.Array) *mlxc.Array
		x, y []float64
	}{
		"log":     {(*mlxc.Array).Log, []float64{0, -1, inf, nan}, []float64{-inf, nan, inf, nan}},
		"log2":    {(*mlxc.Array).Log2, []float64{0, -1, inf, 8}, []float64{-inf, nan, inf, 3}},
		"log10":   {(*mlxc.Array).Log10, []float64{0, -1, inf}, []float64{-inf, nan, inf}},
		"log1p":   {(*mlxc.Array).Log1p, []float64{-1, -2, inf, 1e-7}, []float64{-inf, nan, inf, 1e-7}},
		"exp":     {(*mlxc.Array).Exp, []float64{-inf, inf, nan, 200}, []float64{0, inf, nan, inf}},
		"expm1":   {(*mlxc.Array).Expm1, []float64{-inf, inf, nan}, []float64{-1, inf, nan}},
		"sqrt":    {(*mlxc.Array).Sqrt, []float64{-1, inf, 0}, []float64{nan, inf, 0}},
		"rsqrt":   {(*mlxc.Array).Rsqrt, []float64{-1, inf, 0}, []float64{nan, 0, inf}},
		"erfinv":  {(*mlxc.Array).ErfInv, []float64{-1, 1, 2, 0}, []float64{-inf, inf, nan, 0}},
		"erf":     {(*mlxc.Array).Erf, []float64{-inf, inf, nan}, []float64{-1, 1, nan}},
		"arcsin":  {(*mlxc.Array).Arcsin, []float64{2, -2}, []float64{nan, nan}},
		"arccos":  {(*mlxc.Array).Arccos, []float64{2, -2}, []float64{nan, nan}},
		"arctan":  {(*mlxc.Array).Arctan, []float64{inf, -inf}, []float64{math.Pi / 2, -math.Pi / 2}},
		"arccosh": {(*mlxc.Array).Arccosh, []float64{0.5, inf}, []float64{nan, inf}},
		"arctanh": {(*mlxc.Array).Arctanh, []float64{-1, 1, 2}, []float64{-inf, inf, nan}},
		"arcsinh": {(*mlxc.Array).Arcsinh, []float64{1e30, -1e10}, []float64{math.Asinh(1e30), math.Asinh(-1e10)}},
		"tanh":    {(*mlxc.Array).Tanh, []float64{inf, -inf, nan}, []float64{1, -1, nan}},
		"sigmoid": {(*mlxc.Array).Sigmoid, []float64{inf, -inf, nan}, []float64{1, 0, nan}},
		"1/x":     {(*mlxc.Array).Reciprocal, []float64{0, inf}, []float64{inf, 0}},
		"sign":    {(*mlxc.Array).Sign, []float64{nan, inf, -inf, 0}, []float64{0, 1, -1, 0}},
		"floor":   {(*mlxc.Array).Floor, []float64{-0.5, inf, nan}, []float64{-1, inf, nan}},
		"ceil":    {(*mlxc.Array).Ceil, []float64{-0.5, 0.5, nan}, []float64{0, 1, nan}},
		"trunc":   {(*mlxc.Array).Trunc, []float64{-1.5, 1.5, nan}, []float64{-1, 1, nan}},
	} {
		t.Run(name, func(t *testing.T) {
			got := wide(t, c.got(mlxc.FromSlice(c.x).AsType(mlxc.Float32)))
			for i, want := range c.y {
				closeTo(t, want, got[i], 1e-6, "of %g", c.x[i])
			}
			require.Empty(t, floats(t, c.got(mlxc.Zeros(mlxc.Float32, 0, 2))))
			require.Equal(t, []int{}, c.got(mlxc.Scalar[float32](0.5)).Shape())
		})
	}
}
