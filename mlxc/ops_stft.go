package mlxc

import (
	"errors"
	"fmt"
)

// STFTConfig holds the options of a short-time Fourier transform. The zero value has frames of 2048 samples, without a
// window, centered, with reflected ends.
type STFTConfig struct {
	// Size is the number of samples per transform. 0 stands for 2048 in STFT. In ISTFT it stands for 2·(frequencies−1),
	// or for the number of frequencies with Full.
	Size int
	Hop  int // samples between frames; 0 for Size/4, which needs a Size of at least 4
	// Window is multiplied with each frame: a vector of at most Size elements, padded with zeros at both ends. nil
	// stands for WindowSize ones.
	Window     *Array
	WindowSize int // 0 for Size
	// NotCentered says that frame t begins at sample t·Hop. Otherwise its center is there, and both ends of the signal
	// are padded as Pad says: "reflect" (also ""), "constant" or "edge". ISTFT ignores Pad.
	NotCentered bool
	Pad         string
	Norm        FFTNorm
	// Full requests all Size frequencies instead of the Size/2+1 that are not negative. STFT of a complex signal is
	// always full.
	Full bool
	// Length is the number of samples of ISTFT's result; 0 stands for all samples of the frames.
	Length int
}

// STFT returns the spectra of overlapping frames of the last axis of a: complex64 of shape (…, frequencies, frames). It
// needs MLX 0.32.4.
func (a *Array) STFT(c STFTConfig) *Array {
	if c.Size == 0 {
		c.Size = 2048
	}
	if c.Pad == "" {
		c.Pad = "reflect"
	}
	if err := c.check(c.Size); err != nil {
		return invalid(opError("stft", err, a, c.Window))
	}
	onesided := !c.Full && a.DType() != Complex64
	return mlxFftStft(a, c.Size, c.Hop, c.WindowSize, c.Window, !c.NotCentered, c.Pad, c.Norm, onesided)
}

// ISTFT returns the signal with the spectra of STFT: it adds the transformed frames, multiplied with the window, and
// divides by the sum of the squared windows. The result is the real part, as float32. It needs MLX 0.32.4.
func (a *Array) ISTFT(c STFTConfig) *Array {
	size := c.Size
	if size == 0 {
		size = a.Dim(-2)
		if !c.Full {
			size = 2 * (size - 1)
		}
	}
	if err := c.check(size); err != nil {
		return invalid(opError("istft", err, a, c.Window))
	}
	return mlxFftIstft(a, c.Size, c.Hop, c.WindowSize, c.Window, !c.NotCentered, c.Norm, !c.Full, c.Length)
}

// check returns an error if an option is not allowed for transforms of the given size.
func (c STFTConfig) check(size int) error {
	for _, n := range []struct {
		name  string
		value int
	}{{"Size", c.Size}, {"Hop", c.Hop}, {"WindowSize", c.WindowSize}, {"Length", c.Length}} {
		if n.value < 0 {
			return fmt.Errorf("%s is %d: it must not be negative", n.name, n.value)
		}
	}
	if c.Hop == 0 && 0 < size && size < 4 {
		return fmt.Errorf("Hop is 0, which stands for Size/4, and Size is %d: set a positive Hop", size)
	}
	if c.Window != nil && c.Window.Err() == nil && c.Window.Size() == 0 {
		return errors.New("Window has 0 elements: it must have at least 1")
	}
	return c.Norm.check()
}
