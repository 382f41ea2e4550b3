package gomlx

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/stretchr/testify/require"
)

// GoMLX's own suites test most operations; see internal/suites. TestOperations tests the others, and the rules that the
// suites do not reach.
func TestOperations(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	zero := float32(0)
	type values = []backends.Value
	cases := []struct {
		name   string
		inputs []array
		build  func(f backends.Function, in values) (backends.Value, error)
		want   any
	}{
		{
			"integer division",
			[]array{of([]int32{7, -7, 7, -7}, 4), of([]int32{2, 2, -2, -2}, 4)},
			func(f backends.Function, in values) (backends.Value, error) { return f.Div(in[0], in[1]) },
			[]int32{3, -3, -3, 3},
		},
		{
			"integer remainder",
			[]array{of([]int32{7, -7, 7, -7}, 4), of([]int32{2, 2, -2, -2}, 4)},
			func(f backends.Function, in values) (backends.Value, error) { return f.Rem(in[0], in[1]) },
			[]int32{1, -1, 1, -1},
		},
		{
			"remainder",
			[]array{of([]float32{5.5, -5.5, 1}, 3), of([]float32{2, 2, inf}, 3)},
			func(f backends.Function, in values) (backends.Value, error) { return f.Rem(in[0], in[1]) },
			[]float32{1.5, -1.5, 1},
		},
		{
			"sign",
			[]array{of([]float32{-3, -zero, 2}, 3)},
			func(f backends.Function, in values) (backends.Value, error) { return f.Sign(in[0]) },
			[]float32{-1, -zero, 1},
		},
		{
			"exp of float64",
			[]array{of([]float64{-14.9, 1, math.Inf(-1), 20}, 4)},
			func(f backends.Function, in values) (backends.Value, error) {
				x, err := f.Exp(in[0])
				if err != nil {
					return nil, err
				}
				x, err = f.Log(x)
				if err != nil {
					return nil, err
				}
				return f.ConvertDType(x, dtypes.Float32)
			},
			[]float32{-14.9, 1, -inf, 20},
		},
		{
			"total order",
			[]array{of([]float32{-nan, -inf, -zero, zero, inf, 1}, 6), of([]float32{-inf, -1, zero, zero, nan, -1}, 6)},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.LessThanTotalOrder(in[0], in[1])
			},
			[]bool{math.Signbit(float64(-nan)), true, math.Signbit(float64(-zero)), false, true, false},
		},
		{
			"total order, not equal",
			[]array{of([]float32{nan, 1}, 2), of([]float32{nan, 2}, 2)},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.NotEqualTotalOrder(in[0], in[1])
			},
			[]bool{false, true},
		},
		{
			"bit counts",
			[]array{of([]int16{-1, 0, 256, 3}, 4)},
			func(f backends.Function, in values) (backends.Value, error) { return f.BitCount(in[0]) },
			[]int16{16, 0, 1, 2},
		},
		{
			"leading zeros",
			[]array{of([]int32{-1, 0, 1, 1 << 20}, 4)},
			func(f backends.Function, in values) (backends.Value, error) { return f.Clz(in[0]) },
			[]int32{0, 32, 31, 11},
		},
		{
			"logical shift",
			[]array{of([]int8{-1, -128, 1}, 3), of([]int8{1, 7, 9}, 3)},
			func(f backends.Function, in values) (backends.Value, error) { return f.ShiftRightLogical(in[0], in[1]) },
			[]int8{127, 1, 0},
		},
		{
			"arithmetic shift of unsigned",
			[]array{of([]uint8{255, 128, 1}, 3), of([]uint8{1, 7, 9}, 3)},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.ShiftRightArithmetic(in[0], in[1])
			},
			[]uint8{255, 255, 0},
		},
		{
			"bitwise and",
			[]array{of([]uint8{7, 3, 6, 14, 15}, 5)},
			func(f backends.Function, in values) (backends.Value, error) { return f.ReduceBitwiseAnd(in[0]) },
			[]uint8{2},
		},
		{
			"bitwise xor over an axis",
			[]array{of([]int32{1, 2, 4, 8, 16, 33}, 3, 2)},
			func(f backends.Function, in values) (backends.Value, error) { return f.ReduceBitwiseXor(in[0], 0) },
			[]int32{1 ^ 4 ^ 16, 2 ^ 8 ^ 33},
		},
		{
			"logical xor",
			[]array{of([]bool{true, true, true, false}, 2, 2)},
			func(f backends.Function, in values) (backends.Value, error) { return f.ReduceLogicalXor(in[0], 1) },
			[]bool{false, true},
		},
		{
			"position of NaN",
			[]array{of([]float32{1, nan, 3, 3, 1, 2}, 2, 3)},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.ArgMinMax(in[0], 1, dtypes.Int64, false)
			},
			[]int64{1, 0},
		},
		{
			"position of true",
			[]array{of([]bool{false, true, true}, 3)},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.ArgMinMax(in[0], 0, dtypes.Int32, false)
			},
			[]int32{1},
		},
		{
			"maximum of nothing",
			[]array{of([]float32{}, 0, 2)},
			func(f backends.Function, in values) (backends.Value, error) { return f.ReduceMax(in[0], 0) },
			[]float32{-inf, -inf},
		},
		{
			"padding inside and negative padding",
			[]array{of([]int32{1, 2, 3}, 3), of([]int32{9})},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.Pad(in[0], in[1], backends.PadAxis{Start: -1, End: 2, Interior: 1})
			},
			[]int32{9, 2, 9, 3, 9, 9},
		},
		{
			"a dynamic slice at the limit",
			[]array{of([]int32{1, 2, 3, 4, 5, 6}, 2, 3), of([]int32{5}), of([]int32{-3})},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.DynamicSlice(in[0], in[1:], []int{1, 2})
			},
			[]int32{4, 5},
		},
		{
			"a dynamic update",
			[]array{of([]int32{1, 2, 3, 4}, 4), of([]int32{8, 9}, 2), of([]int32{3})},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.DynamicUpdateSlice(in[0], in[1], in[2:])
			},
			[]int32{1, 2, 8, 9},
		},
		{
			"windows scattered out of range have no effect",
			[]array{of(make([]float32, 12), 4, 3), of([]int32{0, 3, 2, -1}, 4, 1), of(seq(24), 4, 2, 3)},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.ScatterSum(in[0], in[1], in[2], 1, []int{1, 2}, nil, []int{0}, false, false)
			},
			[]float32{0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17},
		},
		{
			"scattered columns",
			[]array{of(make([]int32, 6), 2, 3), of([]int32{2, 2, 0}, 3, 1), of([]int32{1, 2, 3, 4, 5, 6}, 3, 2)},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.ScatterMax(in[0], in[1], in[2], 1, []int{1}, []int{1}, []int{1}, false, false)
			},
			[]int32{5, 0, 3, 6, 0, 4},
		},
		{
			"maxima selected",
			[]array{of([]float32{1, 5, 2, 3, 3, 9}, 6), of([]float32{10, 20, 30, 40}, 4)},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.SelectAndScatterMax(in[0], in[1], []int{2}, []int{2}, [][2]int{{1, 1}})
			},
			[]float32{10, 20, 0, 30, 0, 40},
		},
		{
			"minima selected",
			[]array{of([]float32{1, 5, 2, 3}, 4), of([]float32{10, 20, 30}, 3)},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.SelectAndScatterMin(in[0], in[1], []int{2}, []int{1}, nil)
			},
			[]float32{10, 0, 50, 0},
		},
		{
			"dilated windows",
			[]array{of([]float32{1, 2, 3, 4, 5}, 5)},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.ReduceWindow(in[0], backends.ReduceOpProduct, []int{2}, []int{1}, []int{2}, []int{2}, [][2]int{{0, 1}})
			},
			[]float32{2, 1, 6, 1, 12, 1, 20, 1},
		},
		{
			"a product of integers",
			[]array{of([]int8{1, 2, 3, 4}, 2, 2), of([]int8{5, 6, 7, 8}, 2, 2)},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.DotGeneral(in[0], []int{1}, nil, in[1], []int{0}, nil,
					backends.DotGeneralConfig{AccumulatorDType: dtypes.Int32})
			},
			[]int32{19, 22, 43, 50},
		},
		{
			"a convolution in batch groups",
			[]array{of(seq(6), 2, 3, 1), of([]float32{1, 1, 2, 2}, 2, 1, 2)},
			convolve(nil, 2),
			[]float32{2, 11, 5, 14},
		},
		{
			"a convolution of integers",
			[]array{of([]int32{0, 1, 2}, 1, 3, 1), of([]int32{1, 10}, 2, 1, 1)},
			convolve([][2]int{{1, -1}}, 1),
			[]int32{0, 10},
		},
		{
			"batch norm",
			[]array{
				of([]float32{1, 3, 5, 9}, 2, 2), of([]float32{1, 2}, 2), of([]float32{0, 1}, 2),
				of([]float32{1, 1}, 2), of([]float32{4, 16}, 2),
			},
			func(f backends.Function, in values) (backends.Value, error) {
				return f.BatchNormForInference(in[0], in[1], in[2], in[3], in[4], 0, 1)
			},
			[]float32{0, 2, 2, 5},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := compute(t, one(c.build), c.inputs...)[0]
			switch want := c.want.(type) {
			case []float32:
				require.InDeltaSlice(t, want, got, 1e-5)
			default:
				require.Equal(t, want, got)
			}
		})
	}
}

func seq(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i)
	}
	return out
}

// convolve convolves (batch, length, channels) with (length, input channels, output channels).
func convolve(padding [][2]int, batchGroups int) func(backends.Function, []backends.Value) (backends.Value, error) {
	axes := backends.ConvolveAxesConfig{
		InputChannels: 2, InputSpatial: []int{1}, KernelInputChannels: 1, KernelOutputChannels: 2, KernelSpatial: []int{0},
		OutputChannels: 2, OutputSpatial: []int{1},
	}
	return func(f backends.Function, in []backends.Value) (backends.Value, error) {
		return f.ConvGeneral(in[0], in[1], axes, nil, padding, nil, nil, 1, batchGroups)
	}
}

func TestPackedElementsKeepTheirBits(t *testing.T) {
	packed := []uint8{0xf0, 0x87, 0x1b}
	for _, d := range []dtypes.DType{dtypes.Int4, dtypes.Uint4, dtypes.Int2, dtypes.Uint2} {
		b := newBackend(t)
		shape := shapes.Make(d, len(packed)*8/d.Bits())
		buf, err := b.BufferFromFlatData(0, packed, shape)
		require.NoError(t, err)
		require.Equal(t, packed, read(t, b, []backends.Buffer{buf})[0])

		twice := one(func(f backends.Function, in []backends.Value) (backends.Value, error) {
			x, err := f.Bitcast(in[0], d)
			if err != nil {
				return nil, err
			}
			return f.Bitcast(x, dtypes.Uint8)
		})
		require.Equal(t, packed, compute(t, twice, of(packed, 3))[0])
	}
}

func TestRandomBitsDependOnTheState(t *testing.T) {
	draw := func(state []uint64) []any {
		return compute(t, func(f backends.Function, in []backends.Value) ([]backends.Value, error) {
			next, bits, err := f.RNGBitGenerator(in[0], shapes.Make(dtypes.Uint64, 4))
			return []backends.Value{next, bits}, err
		}, of(state, 3))
	}
	first := draw([]uint64{1, 2, 3})
	require.Equal(t, first, draw([]uint64{1, 2, 3}))
	require.NotEqual(t, first[1], draw(first[0].([]uint64))[1])
	for i := range 3 {
		other := []uint64{1, 2, 3}
		other[i] += 1 << 32
		require.NotEqual(t, first[1], draw(other)[1])
	}
}
