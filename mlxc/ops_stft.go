package mlxc

import "fmt"

// STFTConfig holds the options of a short-time Fourier transform. The zero value has frames of 2048 samples, without a
// window, centered, with reflected ends.
type STFTConfig struct {
	// Size is the number of samples per transform. 0 stands for 2048 in STFT. In ISTFT it stands for 2·(frequencies−1),
	// or for the number of frequencies with Full.
	Size int
	Hop  int // samples between frames; 0 for Size/4
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
	if err := c.check(); err != nil {
		return invalid(opError("stft", err, a, c.Window))
	}
	onesided := !c.Full && a.DType() != Complex64
	return mlxFftStft(a, c.Size, c.Hop, c.WindowSize, c.Window, !c.NotCentered, c.Pad, c.Norm, onesided)
}

// ISTFT returns the signal with the spectra of STFT: it adds the transformed frames, multiplied with the window, and
// divides by the sum of the squared windows. The result is the real part, as float32. It needs MLX 0.32.4.
func (a *Array) ISTFT(c STFTConfig) *Array {
	if err := c.check(); err != nil {
		return invalid(opError("istft", err, a, c.Window))
	}
	return mlxFftIstft(a, c.Size, c.Hop, c.WindowSize, c.Window, !c.NotCentered, c.Norm, !c.Full, c.Length)
}

// check returns an error if the norm does not exist or a number is negative.
func (c STFTConfig) check() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"Size", c.Size}, {"Hop", c.Hop}, {"WindowSize", c.WindowSize}, {"Length", c.Length}} {
		if n.value < 0 {
			return fmt.Errorf("%s is %d: it must not be negative", n.name, n.value)
		}
	}
	return c.Norm.check()
}
