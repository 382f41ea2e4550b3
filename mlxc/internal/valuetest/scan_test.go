package valuetest

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func init() {
	for _, c := range []struct {
		name  string
		plain func(*mlxc.Array, int) *mlxc.Array
		with  func(*mlxc.Array, int, mlxc.ScanConfig) *mlxc.Array
		step  func(state, v float64) float64
		none  float64
		float bool // the result for integers is float32
	}{
		{
			"mlx_cumsum_axis", (*mlxc.Array).CumSum, (*mlxc.Array).CumSumWith,
			func(s, v float64) float64 { return s + v }, 0, false,
		},
		{
			"mlx_cumprod_axis", (*mlxc.Array).CumProd, (*mlxc.Array).CumProdWith,
			func(s, v float64) float64 { return s * v }, 1, false,
		},
		{"mlx_cummax_axis", (*mlxc.Array).CumMax, (*mlxc.Array).CumMaxWith, math.Max, math.Inf(-1), false},
		{"mlx_cummin_axis", (*mlxc.Array).CumMin, (*mlxc.Array).CumMinWith, math.Min, math.Inf(1), false},
		{
			"mlx_logcumsumexp_axis", (*mlxc.Array).LogCumSumExp, (*mlxc.Array).LogCumSumExpWith,
			func(s, v float64) float64 { return math.Log(math.Exp(s) + math.Exp(v)) }, math.Inf(-1), true,
		},
	} {
		value(c.name, func(t *testing.T) {
			x := []int8{1, 3, 2, 2, 1, 3, 1, 2, 1, 4, 1, 2}
			for _, d := range mlxc.DTypes() {
				if d == mlxc.Complex64 || d == mlxc.Bool {
					continue
				}
				a := mlxc.FromSlice(x, 4, 3).AsType(d).Transpose()
				in, off := wide(t, a), 4e-6
				if d.IsFloating() {
					off = 2 * floatDTypes[d]
				}
				for _, axis := range []int{0, 1, -1} {
					for _, config := range []mlxc.ScanConfig{
						{},
						{Reverse: true},
						{Exclusive: true},
						{Reverse: true, Exclusive: true},
					} {
						scan := c.with(a, axis, config)
						if c.float && d.IsInteger() {
							require.Equal(t, mlxc.Float32, scan.DType())
						} else {
							require.Equal(t, d, scan.DType())
						}
						got := groups(wide(t, scan), []int{3, 4}, []int{axis})
						for i, group := range groups(in, []int{3, 4}, []int{axis}) {
							if config.Reverse {
								slices.Reverse(group)
								slices.Reverse(got[i])
							}
							state := c.none
							for k, v := range group {
								next := c.step(state, v)
								if !config.Exclusive {
									state = next
								}
								if !math.IsInf(state, 0) || d.IsFloating() {
									closeTo(t, state, got[i][k], off, "%v %+v along %d of %v", d, config, axis, group)
								}
								state = next
							}
						}
					}
					require.Equal(t, wide(t, c.with(a, axis, mlxc.ScanConfig{})), wide(t, c.plain(a, axis)))
				}
			}
		})
	}
}

func init() {
	value("mlx_diff", func(t *testing.T) {
		for _, d := range mlxc.DTypes() {
			if d == mlxc.Bool {
				continue
			}
			a := mlxc.FromSlice([]int8{1, 2, 3, 6, 7, 9}, 3, 2).AsType(d).Transpose() // 1 3 7, 2 6 9
			requireArray(t, []int{2, 2}, []float64{2, 4, 4, 3}, a.Diff(1, -1))
			requireArray(t, []int{1, 3}, []float64{1, 3, 2}, a.Diff(1, 0))
			requireArray(t, []int{1, 1}, []float64{2}, a.Index(mlxc.Range(0, 1)).Diff(2, 1))
			requireArray(t, []int{2, 3}, []float64{1, 3, 7, 2, 6, 9}, a.Diff(0, 1))
			requireArray(t, []int{2, 0}, []float64{}, a.Diff(3, 1))
			requireArray(t, []int{2, 0}, []float64{}, a.Diff(math.MaxInt, 1))
			requireArray(t, []int{0, 3}, []float64{}, a.Diff(1<<31-1, -2))
			require.Equal(t, d, a.Diff(2, 1).DType())
		}
		require.Equal(t, []bool{true, false}, read[bool](t, mlxc.FromSlice([]bool{true, false, false}).Diff(1, 0)))
	})
}

func TestScansOfSpecialValues(t *testing.T) {
	testdevice.CPUOnly(t, "compares with float64 in Go, with tolerances for MLX's CPU backend")
	yes := mlxc.FromSlice([]bool{true, true, false})
	require.Equal(t, []int32{1, 2, 2}, read[int32](t, yes.CumSum(0)))
	require.Equal(t, []int32{1, 1, 0}, read[int32](t, yes.CumProd(0)))
	require.Equal(t, []bool{true, true, true}, read[bool](t, yes.CumMax(0)))
	require.Equal(t, []float32{1, 2, 2}, floats(t, yes.CumSumWith(0, mlxc.ScanConfig{DType: mlxc.Float32})))
	bytes := mlxc.FromSlice([]uint8{200, 100})
	require.Equal(t, []uint8{200, 44}, read[uint8](t, bytes.CumSum(0)))
	require.Equal(t, []int64{200, 300}, read[int64](t, bytes.CumSumWith(0, mlxc.ScanConfig{DType: mlxc.Int64})))
	require.Equal(t, []int64{200, 20000}, read[int64](t, bytes.CumProdWith(0, mlxc.ScanConfig{DType: mlxc.Int64})))
	require.Equal(t, []int32{math.MinInt32, 5},
		read[int32](t, mlxc.FromSlice([]int32{5, 1}).CumMaxWith(0, mlxc.ScanConfig{Exclusive: true})))
	require.Equal(t, []uint8{100, 255},
		read[uint8](t, bytes.CumMinWith(0, mlxc.ScanConfig{Exclusive: true, Reverse: true})))
	z := mlxc.FromSlice([]complex64{1i, 2, 1 - 1i})
	require.Equal(t, []complex64{1i, 2 + 1i, 3}, read[complex64](t, z.CumSum(0)))
	require.Equal(t, []complex64{1i, 2i, 2 + 2i}, read[complex64](t, z.CumProd(0)))
	nan := float32(math.NaN())
	for _, a := range []*mlxc.Array{
		mlxc.FromSlice([]float32{1, nan, 2}).CumMax(0),
		mlxc.FromSlice([]float32{1, nan, 2}).CumMin(0),
	} {
		got := wide(t, a)
		require.InDelta(t, 1, got[0], 0)
		require.True(t, math.IsNaN(got[1]) && math.IsNaN(got[2]))
	}
	// A value whose direct computation overflows: ln(e^1000 + e^1000).
	require.InDeltaSlice(t, []float64{1000, 1000 + math.Ln2},
		wide(t, mlxc.FromSlice([]float32{1000, 1000}).LogCumSumExp(0)), 1e-4)
	none := mlxc.Zeros(mlxc.Float32, 0, 3)
	for _, a := range []*mlxc.Array{
		none.CumSum(0), none.CumProd(1), none.CumMax(0), none.CumMin(1),
		none.LogCumSumExp(0),
	} {
		require.Equal(t, []int{0, 3}, a.Shape())
		require.Empty(t, floats(t, a))
	}
}

// CumMax and CumMin of half precision return NaN from the first NaN on, as float32 does.
func TestCumMaxOfHalfNaN(t *testing.T) {
	for _, d := range []mlxc.DType{mlxc.Float16, mlxc.BFloat16} {
		x := mlxc.FromSlice([]float32{1, float32(math.NaN()), 2, -5}).AsType(d)
		for _, c := range []struct {
			config mlxc.ScanConfig
			want   []bool
		}{
			{mlxc.ScanConfig{}, []bool{false, true, true, true}},
			{mlxc.ScanConfig{Reverse: true}, []bool{true, true, false, false}},
			{mlxc.ScanConfig{Exclusive: true}, []bool{false, false, true, true}},
		} {
			for _, got := range []*mlxc.Array{
				x.CumMaxWith(0, c.config), x.CumMinWith(0, c.config),
				x.ExpandDims(1).CumMaxWith(0, c.config), x.ExpandDims(1).CumMinWith(0, c.config),
			} {
				require.Equal(t, d, got.DType())
				require.Equal(t, c.want, read[bool](t, got.IsNaN().Flatten(0, -1)))
			}
		}
	}
}
