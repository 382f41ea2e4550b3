package valuetest

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// newest is the version of MLX that the functions of libmlxg's mlxg_ahead.h need.
const newest = "0.32.4"

func init() {
	value("mlx_minmax_axes", func(t *testing.T) {
		a := normal(1, 3, 4, 5)
		low, high := a.MinMax()
		if !mlxtest.Needs(t, newest, low, high) {
			return
		}
		for _, axes := range [][]int{nil, {0}, {1}, {-1}, {0, 2}} {
			low, high := a.MinMax(axes...)
			require.Equal(t, floats(t, a.Min(axes...)), floats(t, low))
			require.Equal(t, floats(t, a.Max(axes...)), floats(t, high))
			low, high = a.MinMaxKeepDims(axes...)
			require.Equal(t, a.MaxKeepDims(axes...).Shape(), low.Shape())
			require.Equal(t, floats(t, a.MaxKeepDims(axes...)), floats(t, high))
		}
		low, high = mlxc.FromSlice([]float32{1, float32(math.NaN()), -2}).MinMax()
		require.True(t, math.IsNaN(wide(t, low)[0]) && math.IsNaN(wide(t, high)[0]))
		low, high = mlxc.FromSlice([]int8{3, -128, 127}).MinMax()
		require.Equal(t, []int8{-128}, read[int8](t, low))
		require.Equal(t, []int8{127}, read[int8](t, high))
		low, _ = mlxc.Zeros(mlxc.Float32, 0, 2).MinMax()
		require.Error(t, low.Err())
	})
	value("mlx_unique", func(t *testing.T) {
		elements := []int32{3, 1, 2, 1, 3, 3}
		a := mlxc.FromSlice(elements, 2, 3)
		u := a.Unique(5, mlxc.Scalar[int32](-7))
		if !mlxtest.Needs(t, newest, u.Values, u.First, u.Inverse, u.Counts) {
			return
		}
		require.Equal(t, []int32{1, 2, 3, -7, -7}, read[int32](t, u.Values))
		require.Equal(t, []uint32{1, 2, 0}, read[uint32](t, u.First)[:3])
		require.Equal(t, []int32{2, 1, 3, 0, 0}, read[int32](t, u.Counts))
		require.Equal(t, []int{2, 3}, u.Inverse.Shape())
		require.Equal(t, elements, read[int32](t, u.Values.Take(u.Inverse, 0)))

		require.Equal(t, []int32{1, 2, 3, 1}, read[int32](t, a.Unique(4, nil).Values))
		few := a.Unique(2, nil)
		require.Equal(t, []int32{1, 2}, read[int32](t, few.Values))
		require.Equal(t, []uint32{1, 0, 1, 0, 1, 1}, read[uint32](t, few.Inverse))
		require.ErrorContains(t, a.Unique(-1, nil).Values.Err(), "negative size -1")
		require.Error(t, mlxc.Zeros(mlxc.Float32, 0).Unique(1, nil).Values.Err())
	})
	value("mlx_fft_stft", func(t *testing.T) {
		x := normal(2, 2, 20)
		c := mlxc.STFTConfig{Size: 8, Hop: 3, NotCentered: true, Window: mlxc.Hanning(8)}
		got := x.STFT(c)
		if !mlxtest.Needs(t, newest, got) {
			return
		}
		require.Equal(t, []int{2, 5, 5}, got.Shape())
		for frame := range 5 {
			part := x.Index(mlxc.All, mlxc.Range(3*frame, 3*frame+8)).Mul(c.Window)
			same(t, part.RFFT(mlxc.FFTConfig{}), got.Index(mlxc.All, mlxc.All, mlxc.At(frame)), 1e-5)
		}
		c.Full = true
		require.Equal(t, []int{2, 8, 5}, x.STFT(c).Shape())
		c.Full = false
		require.Equal(t, []int{2, 8, 5}, x.AsType(mlxc.Complex64).STFT(c).Shape(), "a complex signal")
		require.Equal(t, []int{1025, 3}, mlxc.Ones(mlxc.Float32, 1200).STFT(mlxc.STFTConfig{}).Shape(), "the defaults")
		require.ErrorContains(t, x.STFT(mlxc.STFTConfig{Size: -8}).Err(), "Size is -8: it must not be negative")
		require.ErrorContains(t, x.STFT(mlxc.STFTConfig{Norm: 3}).Err(), "Norm is 3")
		require.Error(t, x.STFT(mlxc.STFTConfig{Size: 8, Window: mlxc.Hanning(9)}).Err())
		require.ErrorContains(t, x.STFT(mlxc.STFTConfig{Size: 8, Window: mlxc.Zeros(mlxc.Float32, 0)}).Err(),
			"Window has 0 elements: it must have at least 1")
		for _, spectra := range []*mlxc.Array{
			x.STFT(mlxc.STFTConfig{Size: 2}), mlxc.Ones(mlxc.Complex64, 2, 5).ISTFT(mlxc.STFTConfig{}),
		} {
			require.ErrorContains(t, spectra.Err(), "Hop is 0, which stands for Size/4, and Size is 2: set a positive Hop")
		}
	})
	value("mlx_fft_istft", func(t *testing.T) {
		x := normal(3, 2, 40)
		c := mlxc.STFTConfig{Size: 8, Hop: 2, Window: mlxc.Hamming(8), Norm: mlxc.FFTOrtho}
		got := mlxc.Ones(mlxc.Complex64, 5, 3).ISTFT(c)
		if !mlxtest.Needs(t, newest, got) {
			return
		}
		same(t, x, x.STFT(c).ISTFT(c), 1e-5)
		c.Length = 30
		same(t, x.Index(mlxc.All, mlxc.Range(0, 30)), x.STFT(c).ISTFT(c), 1e-5)
		full := mlxc.STFTConfig{Size: 9, Hop: 3, Full: true}
		z := x.AsType(mlxc.Complex64)
		same(t, x.Index(mlxc.All, mlxc.Range(0, 36)), z.STFT(full).ISTFT(full).Index(mlxc.All, mlxc.Range(0, 36)), 1e-5)
		require.ErrorContains(t, x.ISTFT(mlxc.STFTConfig{Length: -1}).Err(), "Length is -1")
	})
	value("mlx_fast_gated_delta_update", gatedDelta)
}

// gatedDelta compares the gated delta rule with a loop in float64.
func gatedDelta(t *testing.T) {
	const batch, length, heads, headDim, valueHeads, valueDim = 2, 3, 2, 4, 4, 5
	source := mlxtest.NewSource(t, 1, 2)
	q, qs := source.Normal(mlxc.Float32, batch, length, heads, headDim)
	k, ks := source.Normal(mlxc.Float32, batch, length, heads, headDim)
	v, vs := source.Normal(mlxc.Float32, batch, length, valueHeads, valueDim)
	g, gs := source.Uniform(mlxc.Float32, 0.5, 1, batch, length, valueHeads)
	b, bs := source.Uniform(mlxc.Float32, 0, 1, batch, length, valueHeads)
	s, ss := source.Normal(mlxc.Float32, batch, valueHeads, valueDim, headDim)
	present := []bool{true, false, true, true, true, true}
	c := mlxc.GatedDeltaConfig{State: s, Mask: mlxc.FromSlice(present, batch, length)}
	out, state := mlxc.GatedDeltaUpdate(q, k, v, g, b, c)
	if !mlxtest.Needs(t, newest, out, state) {
		return
	}
	want, last := make([]float64, len(vs)), slices.Clone(ss)
	for at := range batch * length * valueHeads {
		position, head := at/valueHeads, at%valueHeads
		if !present[position] {
			continue
		}
		shared := (position*heads + head/(valueHeads/heads)) * headDim
		rows := last[(position/length*valueHeads+head)*valueDim*headDim:]
		for d := range valueDim {
			row := rows[d*headDim : (d+1)*headDim]
			known := 0.0
			for i := range row {
				row[i] *= gs[at]
				known += row[i] * ks[shared+i]
			}
			for i := range row {
				row[i] += bs[at] * (vs[at*valueDim+d] - known) * ks[shared+i]
				want[at*valueDim+d] += row[i] * qs[shared+i]
			}
		}
	}
	near(t, want, out, 1e-4)
	near(t, last, state, 1e-4)

	// Without a state, the output is linear in v.
	_, dv, err := mlxc.ValueAndGrad(func(args arrays) arrays {
		out, _ := mlxc.GatedDeltaUpdate(q, k, args[0], g, b, mlxc.GatedDeltaConfig{})
		return arrays{out.Sum()}
	})(arrays{v})
	require.NoError(t, err)
	out, _ = mlxc.GatedDeltaUpdate(q, k, v, g, b, mlxc.GatedDeltaConfig{})
	near(t, wide(t, out.Sum()), dv[0].Mul(v).Sum(), 1e-4)

	of := func(shape ...int) *mlxc.Array { return mlxc.Ones(mlxc.Float32, shape...) }
	for text, call := range map[string]func() (*mlxc.Array, *mlxc.Array){
		"beta has the shape (2,3): it must be (2,3,4)": func() (*mlxc.Array, *mlxc.Array) {
			return mlxc.GatedDeltaUpdate(q, k, v, g, of(2, 3), mlxc.GatedDeltaConfig{})
		},
		"there are 3 value heads: the number must be a multiple of the 2 heads": func() (*mlxc.Array, *mlxc.Array) {
			return mlxc.GatedDeltaUpdate(q, k, of(2, 3, 3, 5), g, b, mlxc.GatedDeltaConfig{})
		},
		"no size may be 0": func() (*mlxc.Array, *mlxc.Array) {
			return mlxc.GatedDeltaUpdate(of(2, 0, 2, 4), k, v, g, b, mlxc.GatedDeltaConfig{})
		},
		"Mask is float32: it must be bool": func() (*mlxc.Array, *mlxc.Array) {
			return mlxc.GatedDeltaUpdate(q, k, v, g, b, mlxc.GatedDeltaConfig{Mask: of(2, 3)})
		},
	} {
		out, _ := call()
		require.ErrorContains(t, out.Err(), text)
	}
}
