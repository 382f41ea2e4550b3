package mlxc

import (
	"errors"
	"fmt"
)

// FFTNorm selects how a Fourier transform and its inverse share the factor 1/n.
type FFTNorm int

// The norms of MLX, as in numpy.
const (
	FFTBackward FFTNorm = iota // the inverse is multiplied by 1/n
	FFTOrtho                   // both are multiplied by 1/√n
	FFTForward                 // the forward transform is multiplied by 1/n
)

func (n FFTNorm) check() error {
	if n < FFTBackward || n > FFTForward {
		return fmt.Errorf("Norm is %d: it must be FFTBackward, FFTOrtho or FFTForward", int(n))
	}
	return nil
}

// FFTConfig holds the options of a Fourier transform. The zero value is numpy's default.
type FFTConfig struct {
	// Axes are the transformed axes. Real transforms use a half spectrum along the last of them. The default is the
	// last axis for FFT, IFFT, RFFT and IRFFT, the last two for FFT2 and its variants, and all for FFTN and its
	// variants.
	Axes []int
	// N holds the sizes of the transform along Axes: longer axes are cut, shorter ones padded with zeros. The default
	// is the size in the array; for the inverses of real transforms it is 2·(size−1) along the last axis.
	N    []int
	Norm FFTNorm
}

// FFT returns the discrete Fourier transform along one axis, Xₖ = Σⱼ xⱼ·e^(−2πi·jk/n), as complex64 for every dtype of
// a. A transformed axis of size 0 is an error unless N sets another size; the result is then zeros. This holds for all
// transforms.
func (a *Array) FFT(c FFTConfig) *Array { return a.fft("fft", mlxFftFftn, c, 1, false) }

// IFFT returns the inverse of FFT, xⱼ = 1/n · Σₖ Xₖ·e^(2πi·jk/n).
func (a *Array) IFFT(c FFTConfig) *Array { return a.fft("ifft", mlxFftIfftn, c, 1, false) }

// RFFT returns the first n/2+1 values of FFT, which determine the others for a real a; imaginary parts are dropped.
func (a *Array) RFFT(c FFTConfig) *Array { return a.fft("rfft", mlxFftRfftn, c, 1, false) }

// IRFFT returns the inverse of RFFT, as float32. For an odd size, N must be set.
func (a *Array) IRFFT(c FFTConfig) *Array { return a.fft("irfft", mlxFftIrfftn, c, 1, true) }

// FFT2 is FFT along two axes.
func (a *Array) FFT2(c FFTConfig) *Array { return a.fft("fft2", mlxFftFftn, c, 2, false) }

// IFFT2 is IFFT along two axes.
func (a *Array) IFFT2(c FFTConfig) *Array { return a.fft("ifft2", mlxFftIfftn, c, 2, false) }

// RFFT2 is RFFT along the last of two axes and FFT along the other.
func (a *Array) RFFT2(c FFTConfig) *Array { return a.fft("rfft2", mlxFftRfftn, c, 2, false) }

// IRFFT2 is the inverse of RFFT2.
func (a *Array) IRFFT2(c FFTConfig) *Array { return a.fft("irfft2", mlxFftIrfftn, c, 2, true) }

// FFTN is FFT along any number of axes.
func (a *Array) FFTN(c FFTConfig) *Array { return a.fft("fftn", mlxFftFftn, c, 0, false) }

// IFFTN is IFFT along any number of axes.
func (a *Array) IFFTN(c FFTConfig) *Array { return a.fft("ifftn", mlxFftIfftn, c, 0, false) }

// RFFTN is RFFT along the last of any number of axes and FFT along the others.
func (a *Array) RFFTN(c FFTConfig) *Array { return a.fft("rfftn", mlxFftRfftn, c, 0, false) }

// IRFFTN is the inverse of RFFTN.
func (a *Array) IRFFTN(c FFTConfig) *Array { return a.fft("irfftn", mlxFftIrfftn, c, 0, true) }

// fft completes the config and transforms `dims` axes, or any number if dims is 0. half says that a is the half
// spectrum of a real transform.
func (a *Array) fft(op string, f func(a *Array, n, axes []int, norm FFTNorm) *Array, c FFTConfig, dims int,
	half bool,
) *Array {
	if a.Err() == nil {
		var err error
		if c, err = c.complete(a, dims, half); err != nil {
			return invalid(opError(op, err, a))
		}
	}
	return f(a, c.N, c.Axes, c.Norm)
}

func (c FFTConfig) complete(a *Array, dims int, half bool) (FFTConfig, error) {
	given := c.N
	switch {
	case c.Norm.check() != nil:
		return c, c.Norm.check()
	case a.NDim() < max(dims, 1):
		return c, fmt.Errorf("the array has %d axes: it must have %d or more", a.NDim(), max(dims, 1))
	case len(c.Axes) == 0 && dims == 0:
		c.Axes = a.allAxes(nil)
	case len(c.Axes) == 0:
		for i := -dims; i < 0; i++ {
			c.Axes = append(c.Axes, i)
		}
	}
	switch {
	case dims > 0 && len(c.Axes) != dims:
		return c, fmt.Errorf("the axes are %[2]v: the number of axes must be %[1]d", dims, c.Axes)
	case len(given) > 0 && len(given) != len(c.Axes):
		return c, fmt.Errorf("N has %d sizes %v: it needs one per axis of %v", len(given), given, c.Axes)
	}
	shape := a.Shape()
	c.N = make([]int, len(c.Axes))
	for i, x := range c.Axes {
		k, err := a.axis(x)
		if err != nil {
			return c, err
		}
		switch {
		case len(given) > 0:
			c.N[i] = given[i]
		case half && i == len(c.Axes)-1:
			c.N[i] = 2 * (shape[k] - 1)
		default:
			c.N[i] = shape[k]
		}
		if c.N[i] < 1 {
			return c, fmt.Errorf("the size of the transform is %d along axis %d: it must be at least 1", c.N[i], x)
		}
		shape[k] = c.N[i]
	}
	return c, checkNew(Complex64, shape)
}

// FFTFreq returns the frequencies of FFT's values for n samples at distance d, in FFT's order: 0, 1, …, then the
// negative ones, divided by n·d. It is float32.
func FFTFreq(n int, d float64) *Array { return frequencies("fftfreq", mlxFftFftfreq, n, d) }

// RFFTFreq returns the n/2+1 frequencies of RFFT's values: 0, 1, …, divided by n·d.
func RFFTFreq(n int, d float64) *Array { return frequencies("rfftfreq", mlxFftRfftfreq, n, d) }

func frequencies(op string, f func(n int, d float64) *Array, n int, d float64) *Array {
	if err := checkNew(Float32, []int{n}); err != nil {
		return invalid(opError(op, err))
	}
	if n == 0 || d == 0 {
		return invalid(opError(op, errors.New("n and d must not be 0")))
	}
	return f(n, d)
}

// FFTShift moves frequency 0 of a transform to the middle of the axes, or of all axes if none are given.
func (a *Array) FFTShift(axes ...int) *Array { return mlxFftFftshift(a, a.allAxes(axes)) }

// IFFTShift is the inverse of FFTShift. It differs from FFTShift for odd sizes.
func (a *Array) IFFTShift(axes ...int) *Array { return mlxFftIfftshift(a, a.allAxes(axes)) }
