package mlxtest

import (
	"cmp"
	"math"
	"math/cmplx"
	"slices"
)

// MatMul returns the m×n matrix Σ_l a[i, l]·b[l, j] for l below k, or with b[j, l] if transposed.
func MatMul(a, b []float64, m, n, k int, transposed bool) []float64 {
	y := make([]float64, m*n)
	for i := range m {
		for j := range n {
			for l := range k {
				if transposed {
					y[i*n+j] += a[i*k+l] * b[j*k+l]
				} else {
					y[i*n+j] += a[i*k+l] * b[l*n+j]
				}
			}
		}
	}
	return y
}

// ByRow applies f to each row of `width` elements and joins the results.
func ByRow(x []float64, width int, f func(row []float64) []float64) []float64 {
	var y []float64
	for row := range slices.Chunk(x, width) {
		y = append(y, f(row)...)
	}
	return y
}

// Fourier returns the discrete Fourier transform of complex numbers, given as pairs of real and imaginary part.
func Fourier(row []float64) []float64 {
	n := len(row) / 2
	var y []float64
	for k := range n {
		var sum complex128
		for i := range n {
			// Reduce k·i first: the sine of a small angle is exact.
			sum += complex(row[2*i], row[2*i+1]) * cmplx.Rect(1, -2*math.Pi*float64(k*i%n)/float64(n))
		}
		y = append(y, real(sum), imag(sum))
	}
	return y
}

// Softmax returns exp(x_j - m) / Σ exp(x_i - m), where m is the largest element.
func Softmax(row []float64) []float64 {
	m := slices.Max(row)
	y := make([]float64, len(row))
	sum := 0.0
	for i, x := range row {
		y[i] = math.Exp(x - m)
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
	return y
}

// PrefixSums returns inclusive prefix sums.
func PrefixSums(row []float64) []float64 {
	y := make([]float64, len(row))
	sum := 0.0
	for i, x := range row {
		sum += x
		y[i] = sum
	}
	return y
}

// Sorted returns the first n elements of a row in the order of compare, and their indices. The sort is stable.
func Sorted(row []float64, n int, compare func(a, b float64) int) (elements, indices []float64) {
	order := make([]int, len(row))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(row[a], row[b]) })
	for _, i := range order[:n] {
		elements, indices = append(elements, row[i]), append(indices, float64(i))
	}
	return elements, indices
}

// Descending compares for [Sorted], the largest element first.
func Descending(a, b float64) int { return cmp.Compare(b, a) }
