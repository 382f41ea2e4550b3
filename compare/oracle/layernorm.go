package oracle

import "math"

// LayerNorm returns y = γ·x̂ + β with x̂ = (x − μ)·σ⁻¹, μ = mean(x) and σ⁻¹ = 1/√(mean((x − μ)²) + eps), for every row
// x along the last axis (Ba, Kiros and Hinton, "Layer Normalization", 2016, section 3, with MLX's eps). γ is w, or ones
// if w is nil; β is b, or zeros if b is nil. w and b have the length of a row.
func LayerNorm(x Tensor, w, b *Tensor, eps float64) Tensor {
	y := New(x.Shape...)
	rows, width := x.matrix()
	for i := range rows {
		yi := y.row(i)
		normal, _ := standardized(x.row(i), eps)
		for j := range width {
			yi[j] = weightAt(w, j) * normal[j]
			if b != nil {
				yi[j] += b.Data[j]
			}
		}
	}
	return y
}

// LayerNormVJP returns the gradients of ⟨dy, LayerNorm(x, w, b)⟩ with respect to x, γ and β, even if w or b is nil.
//
// With D the width, ∂μ/∂x_k = 1/D and ∂σ⁻¹/∂x_k = −σ⁻³·(x_k − μ)/D, so ∂x̂_j/∂x_k =
// σ⁻¹·(1[j=k] − 1/D − x̂_j·x̂_k/D). Hence, with g = dy·γ,
//
//	dx_k = σ⁻¹·(g_k − mean(g) − x̂_k·mean(g·x̂))
//	dγ_k = Σ_rows dy_k·x̂_k
//	dβ_k = Σ_rows dy_k
func LayerNormVJP(x Tensor, w *Tensor, eps float64, dy Tensor) (dx, dw, db Tensor) {
	rows, width := x.matrix()
	dx, dw, db = New(x.Shape...), New(width), New(width)
	for i := range rows {
		dyi, dxi := dy.row(i), dx.row(i)
		normal, inverse := standardized(x.row(i), eps)
		meanG, meanGX := 0.0, 0.0
		for j := range width {
			g := dyi[j] * weightAt(w, j) / float64(width)
			meanG += g
			meanGX += g * normal[j]
		}
		for j := range width {
			dxi[j] = inverse * (dyi[j]*weightAt(w, j) - meanG - normal[j]*meanGX)
			dw.Data[j] += dyi[j] * normal[j]
			db.Data[j] += dyi[j]
		}
	}
	return dx, dw, db
}

// standardized returns the x̂ and the σ⁻¹ of a row.
func standardized(x []float64, eps float64) (normal []float64, inverse float64) {
	mean := 0.0
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	variance := 0.0
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	inverse = 1 / math.Sqrt(variance+eps)
	normal = make([]float64, len(x))
	for j, v := range x {
		normal[j] = (v - mean) * inverse
	}
	return normal, inverse
}
