package mlxc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// The dtypes equal mlx 0.32.2 in Python, for d in the order of mlxc.DTypes:
//
//	import mlx.core as mx
//	x = mx.array([1, 0]).astype(d)
//	print([(x + s).dtype for s in (True, 2, 2.5, 2j)])
func TestScalarsKeepTheDType(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64")
	type small int8
	type ratio float32
	for _, d := range mlxc.DTypes() {
		x := mlxc.FromSlice([]int32{1, 0}).AsType(d)
		integer, float, comparison := d, d, mlxc.Bool
		if d == mlxc.Bool {
			integer = mlxc.Int32
		}
		if !d.IsFloating() && d != mlxc.Complex64 {
			float = mlxc.Float32
		}
		quotient := float
		for _, s := range []struct {
			value any
			want  mlxc.DType
		}{
			{true, d},
			{2, integer},
			{int64(2), integer},
			{uint8(2), integer},
			{small(2), integer},
			{uint64(2), integer},
			{2.0, float},
			{float32(2), float},
			{ratio(2), float},
			{float16.Fromfloat32(2), float},
			{bfloat16.FromFloat32(2), float},
			{complex64(2), mlxc.Complex64},
			{complex128(2), mlxc.Complex64},
		} {
			y := x.MulScalar(s.value).AddScalar(s.value)
			require.NoError(t, y.Err(), "%v %T", d, s.value)
			require.Equal(t, s.want, y.DType(), "%v %T", d, s.value)
			want := []float64{4, 2}
			if s.value == true {
				want = []float64{2, 1}
				if d == mlxc.Bool {
					want = []float64{1, 1}
				}
			}
			require.Equal(t, want, wide(t, y.Real().AsType(mlxc.Float64)), "%v %T", d, s.value)
			require.Equal(t, comparison, x.EqualScalar(s.value).DType())
		}
		require.Equal(t, quotient, x.DivScalar(2).DType(), d)
		require.Equal(t, quotient, x.AddScalar(1).RDivScalar(2).DType(), d)
	}
}

func TestScalarsAreExact(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64")
	const odd = 1<<53 + 1
	x := mlxc.FromSlice([]int64{odd, -odd})
	require.Equal(t, []int64{odd + 2, -odd + 2}, read[int64](t, x.AddScalar(2)))
	require.Equal(t, []int64{3 * odd, -3 * odd}, read[int64](t, x.MulScalar(3)))
	require.Equal(t, []int64{0, -2 * odd}, read[int64](t, x.SubScalar(int64(odd))))
	require.Equal(t, []bool{true, false}, read[bool](t, x.EqualScalar(odd)))
	require.Equal(t, []int64{odd, 5}, read[int64](t, x.Clip(5, nil)))
	require.Equal(t, []int64{odd, 5}, read[int64](t, x.Clip(5, math.Inf(1))))
	u := mlxc.FromSlice([]uint64{math.MaxUint64 - 1})
	require.Equal(t, []uint64{math.MaxUint64}, read[uint64](t, u.AddScalar(1)))
	require.Equal(t, []bool{true}, read[bool](t, u.LessScalar(uint64(math.MaxUint64))))
	require.Equal(t, []float64{0.30000000000000004}, read[float64](t, mlxc.FromSlice([]float64{0.1}).AddScalar(0.2)))
}

func TestScalarOperations(t *testing.T) {
	x := mlxc.FromSlice([]int32{-7, 2, 5})
	for name, c := range map[string]struct {
		got  *mlxc.Array
		want any
	}{
		"add":           {x.AddScalar(1), []int32{-6, 3, 6}},
		"sub":           {x.SubScalar(1), []int32{-8, 1, 4}},
		"rsub":          {x.RSubScalar(1), []int32{8, -1, -4}},
		"mul":           {x.MulScalar(-2), []int32{14, -4, -10}},
		"mul by a half": {x.MulScalar(0.5), []float32{-3.5, 1, 2.5}},
		"div":           {x.DivScalar(2), []float32{-3.5, 1, 2.5}},
		"rdiv":          {x.RDivScalar(70), []float32{-10, 35, 14}},
		"floor divide":  {x.FloorDivideScalar(3), []int32{-3, 0, 1}},
		"remainder":     {x.RemainderScalar(3), []int32{2, 2, 2}},
		"pow":           {x.PowScalar(2), []int32{49, 4, 25}},
		"rpow":          {x.MaximumScalar(0).RPowScalar(2), []int32{1, 4, 32}},
		"maximum":       {x.MaximumScalar(2), []int32{2, 2, 5}},
		"minimum":       {x.MinimumScalar(2), []int32{-7, 2, 2}},
		"equal":         {x.EqualScalar(2), []bool{false, true, false}},
		"not equal":     {x.NotEqualScalar(2), []bool{true, false, true}},
		"less":          {x.LessScalar(2), []bool{true, false, false}},
		"less equal":    {x.LessEqualScalar(2), []bool{true, true, false}},
		"greater":       {x.GreaterScalar(2), []bool{false, false, true}},
		"greater equal": {x.GreaterEqualScalar(2), []bool{false, true, true}},
		"clip":          {x.Clip(-1, 3), []int32{-1, 2, 3}},
		"clip floats":   {x.Clip(-1, 2.5), []float32{-1, 2, 2.5}},
		"clip above":    {x.Clip(nil, 3), []int32{-7, 2, 3}},
		"no clip":       {x.Clip(math.Inf(-1), nil), []int32{-7, 2, 5}},
	} {
		require.Equal(t, c.want, mlxtest.Elements(t, c.got), name)
	}
	require.Equal(t, []int32{-7, 2, 5}, read[int32](t, x), "the operand is not freed")
}

func TestWrongScalars(t *testing.T) {
	of := func(d mlxc.DType) *mlxc.Array { return mlxc.Ones(d, 2) }
	for _, c := range []struct {
		got  *mlxc.Array
		want string
	}{
		{of(mlxc.Uint8).AddScalar(300), "mlxc: AddScalar uint8(2): the scalar is 300: uint8 holds 0 … 255"},
		{of(mlxc.Uint32).SubScalar(-1), "mlxc: SubScalar uint32(2): the scalar is -1: uint32 holds 0 … 4294967295"},
		{of(mlxc.Int8).EqualScalar(-129), "mlxc: EqualScalar int8(2): the scalar is -129: int8 holds -128 … 127"},
		{of(mlxc.Uint64).MulScalar(-1), "mlxc: MulScalar uint64(2): the scalar is -1: uint64 holds 0 … " +
			"18446744073709551615"},
		{
			of(mlxc.Int64).AddScalar(uint64(1 << 63)),
			"mlxc: AddScalar int64(2): the scalar is 9223372036854775808: int64 holds -9223372036854775808 … " +
				"9223372036854775807",
		},
		{of(mlxc.Bool).AddScalar(1 << 40), "mlxc: AddScalar bool(2): the scalar is 1099511627776: int32 holds " +
			"-2147483648 … 2147483647"},
		{of(mlxc.Float32).AddScalar("2"), "mlxc: AddScalar float32(2): the scalar is a string: it must be a bool or " +
			"a number"},
		{of(mlxc.Float32).AddScalar(nil), "mlxc: AddScalar float32(2): the scalar is a <nil>: it must be a bool or a " +
			"number"},
		{
			of(mlxc.Float32).Clip(0, of(mlxc.Float32)),
			"mlxc: Clip float32(2): the scalar is a *mlxc.Array: it must be a bool or a number",
		},
	} {
		requireMessage(t, c.got.Err(), c.want)
	}
	bad := of(mlxc.Float32).Add(mlxc.Ones(mlxc.Float32, 3))
	for _, got := range []*mlxc.Array{bad.AddScalar(1), bad.Clip(nil, nil), bad.Clip(0, 1), bad.RSubScalar("x")} {
		require.ErrorContains(t, got.Err(), "mlxc: add float32(2), float32(3)")
	}
	require.ErrorIs(t, (*mlxc.Array)(nil).AddScalar(1).Err(), mlxc.ErrNil)
}
