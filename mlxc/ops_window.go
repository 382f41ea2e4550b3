package mlxc

import "fmt"

// Window functions as in numpy: float32 of shape (n), with sample k of 0 … n−1. A window of one sample is 1.

// Bartlett returns the triangular window, 1 − |2k/(n−1) − 1|.
func Bartlett(n int) *Array { return window("bartlett", mlxBartlett, n) }

// Blackman returns the Blackman window, 0.42 − 0.5·cos(2πk/(n−1)) + 0.08·cos(4πk/(n−1)).
func Blackman(n int) *Array { return window("blackman", mlxBlackman, n) }

// Hamming returns the Hamming window, 0.54 − 0.46·cos(2πk/(n−1)).
func Hamming(n int) *Array { return window("hamming", mlxHamming, n) }

// Hanning returns the Hann window, 0.5 − 0.5·cos(2πk/(n−1)).
func Hanning(n int) *Array { return window("hanning", mlxHanning, n) }

func window(op string, f func(n int) *Array, n int) *Array {
	if n < 0 {
		return invalid(opError(op, fmt.Errorf("a window of %d samples: there must be at least 0", n)))
	}
	return f(n)
}
