package valuetest

import (
	"math"
	"math/cmplx"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// complexes returns the elements of a, converted from any dtype.
func complexes(t testing.TB, a *mlxc.Array) []complex128 {
	t.Helper()
	var out []complex128
	for _, v := range read[complex64](t, a.AsType(mlxc.Complex64)) {
		out = append(out, complex128(v))
	}
	return out
}

// fourier returns the discrete Fourier transform of x along one axis by definition. sign is the sign of the exponent.
func fourier(x []complex128, shape []int, axis int, sign float64) []complex128 {
	n, inner := shape[axis], 1
	for _, k := range shape[axis+1:] {
		inner *= k
	}
	out := make([]complex128, len(x))
	for i := range x {
		k, from := i/inner%n, i-i/inner%n*inner
		for j := range n {
			out[i] += x[from+j*inner] * cmplx.Rect(1, sign*2*math.Pi*float64(j*k%n)/float64(n))
		}
	}
	return out
}

// spectrum returns the transform of a along axes, multiplied by scale.
func spectrum(t testing.TB, a *mlxc.Array, sign, scale float64, axes ...int) []complex128 {
	t.Helper()
	x := complexes(t, a)
	for _, axis := range axes {
		x = fourier(x, a.Shape(), (axis+a.NDim())%a.NDim(), sign)
	}
	for i := range x {
		x[i] *= complex(scale, 0)
	}
	return x
}

func nearComplex(t testing.TB, want []complex128, got *mlxc.Array) {
	t.Helper()
	v := complexes(t, got)
	require.Len(t, v, len(want))
	for i := range want {
		require.InDelta(t, 0, cmplx.Abs(want[i]-v[i]), 2e-5*math.Max(1, cmplx.Abs(want[i])), "element %d", i)
	}
}

// wave returns a random complex array.
func wave(seed uint64, shape ...int) *mlxc.Array {
	return mlxc.RandomNormal(mlxc.RandomKey(seed), mlxc.Complex64, shape...)
}

func init() {
	type config = mlxc.FFTConfig
	value("mlx_fft_fftn", func(t *testing.T) {
		a := wave(1, 3, 4, 5)
		for name, c := range map[string]struct {
			got  *mlxc.Array
			axes []int
			size int
		}{
			"last axis":       {a.FFT(config{}), []int{-1}, 5},
			"first axis":      {a.FFT(config{Axes: []int{0}}), []int{0}, 3},
			"last two axes":   {a.FFT2(config{}), []int{1, 2}, 20},
			"two axes":        {a.FFT2(config{Axes: []int{-1, 0}}), []int{0, 2}, 15},
			"all axes":        {a.FFTN(config{}), []int{0, 1, 2}, 60},
			"columns":         {columnMajor(a).FFTN(config{}), []int{0, 1, 2}, 60},
			"part":            {strided(a).FFT(config{Axes: []int{1}}), []int{1}, 4},
			"negative axes":   {a.FFTN(config{Axes: []int{-2}}), []int{1}, 4},
			"their own sizes": {a.FFTN(config{Axes: []int{1, 2}, N: []int{4, 5}}), []int{1, 2}, 20},
		} {
			t.Run(name, func(t *testing.T) { nearComplex(t, spectrum(t, a, -1, 1, c.axes...), c.got) })
		}
		n := 1 / math.Sqrt(5)
		nearComplex(t, spectrum(t, a, -1, n, -1), a.FFT(config{Norm: mlxc.FFTOrtho}))
		nearComplex(t, spectrum(t, a, -1, n*n, -1), a.FFT(config{Norm: mlxc.FFTForward}))
		// A longer transform pads with zeros. A shorter one drops elements.
		b := mlxc.FromSlice([]int32{1, 2, 3})
		nearComplex(t, spectrum(t, mlxc.FromSlice([]float32{1, 2, 3, 0, 0}), -1, 1, 0), b.FFT(config{N: []int{5}}))
		nearComplex(t, []complex128{3, -1}, b.FFT(config{N: []int{2}}))
		nearComplex(t, []complex128{6, -2 - 2i, 2, -2 + 2i}, b.AsType(mlxc.Float16).FFT(config{N: []int{4}}))
		nearComplex(t, make([]complex128, 6), mlxc.Zeros(mlxc.Float32, 3, 0).FFT(config{N: []int{2}}))
		require.Equal(t, []int{0, 3}, mlxc.Zeros(mlxc.Float32, 0, 3).FFT(config{}).Shape())
		require.Equal(t, mlxc.Complex64, b.FFT(config{}).DType())
	})
	value("mlx_fft_ifftn", func(t *testing.T) {
		a := wave(2, 3, 4, 5)
		nearComplex(t, spectrum(t, a, 1, 1.0/5, -1), a.IFFT(config{}))
		nearComplex(t, spectrum(t, a, 1, 1.0/20, 1, 2), a.IFFT2(config{}))
		nearComplex(t, spectrum(t, a, 1, 1.0/60, 0, 1, 2), a.IFFTN(config{}))
		nearComplex(t, spectrum(t, a, 1, 1/math.Sqrt(5), -1), a.IFFT(config{Norm: mlxc.FFTOrtho}))
		nearComplex(t, spectrum(t, a, 1, 1, -1), a.IFFT(config{Norm: mlxc.FFTForward}))
		for _, norm := range []mlxc.FFTNorm{mlxc.FFTBackward, mlxc.FFTOrtho, mlxc.FFTForward} {
			same(t, a, a.FFTN(config{Norm: norm}).IFFTN(config{Norm: norm}), 1e-5)
		}
	})
	value("mlx_fft_rfftn", func(t *testing.T) {
		for _, n := range []int{4, 5} {
			a := normal(3, 3, 2, n)
			head := func(full *mlxc.Array, axis int) *mlxc.Array { return full.SplitAt(axis, full.Dim(axis)/2+1)[0] }
			same(t, head(a.FFT(config{}), -1), a.RFFT(config{}), 1e-5)
			same(t, head(a.FFT(config{Axes: []int{0}, N: []int{7}}), 0), a.RFFT(config{Axes: []int{0}, N: []int{7}}),
				1e-5)
			same(t, head(a.FFT2(config{Norm: mlxc.FFTOrtho}), -1), a.RFFT2(config{Norm: mlxc.FFTOrtho}), 1e-5)
			same(t, head(a.FFTN(config{}), -1), columnMajor(a).RFFTN(config{}), 1e-5)
			same(t, head(a.FFTN(config{Axes: []int{2, 0}}), 0), a.RFFTN(config{Axes: []int{2, 0}}), 1e-5)
		}
		nearComplex(t, []complex128{6, 0}, mlxc.FromSlice([]int32{3, 3}).RFFT(config{}))
		nearComplex(t, []complex128{6, 0}, mlxc.FromSlice([]complex64{3 + 1i, 3 - 7i}).RFFT(config{}))
	})
	value("mlx_fft_irfftn", func(t *testing.T) {
		a := normal(4, 3, 4, 6)
		require.Equal(t, mlxc.Float32, a.RFFT(config{}).IRFFT(config{}).DType())
		same(t, a, a.RFFT(config{}).IRFFT(config{}), 1e-5)
		same(t, a, a.RFFT2(config{Norm: mlxc.FFTForward}).IRFFT2(config{Norm: mlxc.FFTForward}), 1e-5)
		same(t, a, a.RFFTN(config{}).IRFFTN(config{}), 1e-5)
		odd := config{Axes: []int{1, 0}, N: []int{4, 3}}
		same(t, a, a.RFFTN(odd).IRFFTN(odd), 1e-5)
		// Four elements of 2 have the spectrum 8, 0, 0.
		near(t, []float64{2, 2, 2, 2}, mlxc.FromSlice([]complex64{8, 0, 0}).IRFFT(config{}), 1e-6)
		near(t, []float64{4, 4, 4, 4}, mlxc.FromSlice([]complex64{8, 0, 0}).IRFFT(config{Norm: mlxc.FFTOrtho}), 1e-6)
	})
	value("mlx_fft_fftfreq", func(t *testing.T) {
		near(t, []float64{0, 0.5, 1, -1, -0.5}, mlxc.FFTFreq(5, 0.4), 1e-6)
		near(t, []float64{0, 0.25, -0.5, -0.25}, mlxc.FFTFreq(4, 1), 1e-6)
	})
	value("mlx_fft_rfftfreq", func(t *testing.T) {
		near(t, []float64{0, 0.5, 1}, mlxc.RFFTFreq(5, 0.4), 1e-6)
		near(t, []float64{0, 0.25, 0.5}, mlxc.RFFTFreq(4, 1), 1e-6)
	})
	value("mlx_fft_fftshift", func(t *testing.T) {
		a := mlxc.FromSlice([]int32{0, 1, 2, 3, 4})
		require.Equal(t, []int32{3, 4, 0, 1, 2}, read[int32](t, a.FFTShift()))
		m := mlxc.FromSlice([]int32{0, 1, 2, 3, 4, 5}, 2, 3)
		require.Equal(t, []int32{5, 3, 4, 2, 0, 1}, read[int32](t, m.FFTShift()))
		require.Equal(t, []int32{2, 0, 1, 5, 3, 4}, read[int32](t, m.FFTShift(-1)))
		near(t, []float64{-0.5, -0.25, 0, 0.25}, mlxc.FFTFreq(4, 1).FFTShift(), 1e-6)
	})
	value("mlx_fft_ifftshift", func(t *testing.T) {
		a := mlxc.FromSlice([]int32{0, 1, 2, 3, 4})
		require.Equal(t, []int32{2, 3, 4, 0, 1}, read[int32](t, a.IFFTShift()))
		require.Equal(t, []int32{0, 1, 2, 3, 4}, read[int32](t, a.FFTShift().IFFTShift()))
		m := mlxc.FromSlice([]int32{0, 1, 2, 3, 4, 5}, 2, 3)
		require.Equal(t, []int32{1, 2, 0, 4, 5, 3}, read[int32](t, m.IFFTShift(1)))
	})
}

func TestFFTConfigIsNotWrittenTo(t *testing.T) {
	c := mlxc.FFTConfig{Axes: []int{-1}, N: []int{8}}
	_ = wave(5, 2, 8).FFT(c)
	require.True(t, slices.Equal(c.Axes, []int{-1}) && slices.Equal(c.N, []int{8}))
}
