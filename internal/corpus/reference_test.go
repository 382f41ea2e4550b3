package corpus

import (
	"math"
	"math/cmplx"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
)

// each returns f of each element.
func each(x []float64, f func(float64) float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = f(v)
	}
	return y
}

// tabulate returns f(0), …, f(n−1).
func tabulate(n int, f func(i int) float64) []float64 {
	y := make([]float64, n)
	for i := range y {
		y[i] = f(i)
	}
	return y
}

func sum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}

func dot(x, y []float64) float64 {
	return sum(tabulate(len(x), func(i int) float64 { return x[i] * y[i] }))
}

func mean(x []float64) float64 { return sum(x) / float64(len(x)) }

func rmsNorm(x []float64, epsilon float64) []float64 {
	r := 1 / math.Sqrt(dot(x, x)/float64(len(x))+epsilon)
	return each(x, func(v float64) float64 { return v * r })
}

func layerNorm(x []float64, epsilon float64) []float64 {
	m := mean(x)
	return rmsNorm(each(x, func(v float64) float64 { return v - m }), epsilon)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func silu(x float64) float64 { return x * sigmoid(x) }

func gelu(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }

func tanhGelu(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// transpose returns the transpose of a matrix with n columns.
func transpose(x []float64, n int) []float64 {
	m := len(x) / n
	return tabulate(len(x), func(i int) float64 { return x[i%m*n+i/m] })
}

// dft returns the discrete Fourier transform of real and imaginary parts that alternate. The exponent has the given
// sign, −1 or 1. Neither direction divides by the length.
func dft(x []float64, sign float64) []float64 {
	n := len(x) / 2
	y := make([]float64, len(x))
	for k := range n {
		var s complex128
		for j := range n {
			s += complex(x[2*j], x[2*j+1]) * cmplx.Exp(complex(0, sign*2*math.Pi*float64(j*k%n)/float64(n)))
		}
		y[2*k], y[2*k+1] = real(s), imag(s)
	}
	return y
}

// attention returns softmax(scale·q·kᵀ)·v of one query.
func attention(q, k, v []float64, scale float64) []float64 {
	d := len(q)
	n := len(k) / d
	weights := mlxtest.Softmax(tabulate(n, func(i int) float64 { return scale * dot(q, k[i*d:(i+1)*d]) }))
	return mlxtest.MatMul(weights, v, 1, len(v)/n, n, false)
}

// fromTo returns a reference that computes one output from one input.
func fromTo(in, out string, f func(x []float64) []float64) func(arrays) arrays {
	return func(a arrays) arrays { return arrays{out: f(a[in])} }
}

// elementwise returns a reference that applies f to each element.
func elementwise(in, out string, f func(float64) float64) func(arrays) arrays {
	return fromTo(in, out, func(x []float64) []float64 { return each(x, f) })
}

// pairwise returns a reference that applies f to the elements of two inputs of one shape.
func pairwise(a, b, out string, f func(a, b float64) float64) func(arrays) arrays {
	return func(in arrays) arrays {
		return arrays{out: tabulate(len(in[a]), func(i int) float64 { return f(in[a][i], in[b][i]) })}
	}
}
