package oracle

import "math"

// Softmax returns y_j = exp(x_j)/Σ_k exp(x_k) for every row x along the last axis (Bridle,
// "Probabilistic Interpretation of Feedforward Classification Network Outputs", 1990). The maximum of the row is
// subtracted first so that exp does not overflow; this does not change y.
func Softmax(x Tensor) Tensor {
	y := New(x.Shape...)
	rows, _ := x.matrix()
	for i := range rows {
		softmaxRow(y.row(i), x.row(i))
	}
	return y
}

// SoftmaxVJP returns the gradient of ⟨dy, Softmax(x)⟩ with respect to x.
//
// From ∂y_j/∂x_k = y_j·(1[j=k] − y_k) follows dx_k = y_k·(dy_k − Σ_j y_j·dy_j).
func SoftmaxVJP(x, dy Tensor) Tensor {
	dx := New(x.Shape...)
	y := Softmax(x)
	rows, width := x.matrix()
	for i := range rows {
		yi, dyi, dxi := y.row(i), dy.row(i), dx.row(i)
		dot := 0.0
		for j := range width {
			dot += yi[j] * dyi[j]
		}
		for j := range width {
			dxi[j] = yi[j] * (dyi[j] - dot)
		}
	}
	return dx
}

// softmaxRow sets y to the softmax of x and returns ln Σ_j exp(x_j).
func softmaxRow(y, x []float64) (logSumExp float64) {
	largest := math.Inf(-1)
	for _, v := range x {
		largest = math.Max(largest, v) // NaN if v is NaN
	}
	sum := 0.0
	for j, v := range x {
		y[j] = math.Exp(v - largest)
		sum += y[j]
	}
	for j := range y {
		y[j] /= sum
	}
	return largest + math.Log(sum)
}
