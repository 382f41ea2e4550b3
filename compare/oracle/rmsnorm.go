package oracle

import "math"

// RMSNorm returns y = w·x·r with r = 1/√(mean(x²) + eps), for every row x along the last axis (Zhang and Sennrich,
// "Root Mean Square Layer Normalization", 2019, equation 4, with MLX's eps). w has the length of a row; nil means ones.
func RMSNorm(x Tensor, w *Tensor, eps float64) Tensor {
	y := New(x.Shape...)
	rows, width := x.matrix()
	for i := range rows {
		xi, yi := x.row(i), y.row(i)
		r := inverseRMS(xi, eps)
		for j := range width {
			yi[j] = weightAt(w, j) * xi[j] * r
		}
	}
	return y
}

// RMSNormVJP returns the gradients of ⟨dy, RMSNorm(x, w)⟩ with respect to x and the weight, even if w is nil.
//
// With D the width and r as in [RMSNorm], ∂r/∂x_k = −r³·x_k/D. By the product rule,
//
//	dx_k = r·dy_k·w_k + (Σ_j dy_j·w_j·x_j)·∂r/∂x_k
//	     = r·(dy_k·w_k − x_k·s·r²/D),   s = Σ_j dy_j·w_j·x_j
//	dw_k = Σ_rows dy_k·x_k·r
func RMSNormVJP(x Tensor, w *Tensor, eps float64, dy Tensor) (dx, dw Tensor) {
	rows, width := x.matrix()
	dx, dw = New(x.Shape...), New(width)
	for i := range rows {
		xi, dyi, dxi := x.row(i), dy.row(i), dx.row(i)
		r := inverseRMS(xi, eps)
		s := 0.0
		for j := range width {
			s += dyi[j] * weightAt(w, j) * xi[j]
		}
		for j := range width {
			dxi[j] = r * (dyi[j]*weightAt(w, j) - xi[j]*s*r*r/float64(width))
			dw.Data[j] += dyi[j] * xi[j] * r
		}
	}
	return dx, dw
}

func inverseRMS(x []float64, eps float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return 1 / math.Sqrt(sum/float64(len(x))+eps)
}

func weightAt(w *Tensor, j int) float64 {
	if w == nil {
		return 1
	}
	return w.Data[j]
}
