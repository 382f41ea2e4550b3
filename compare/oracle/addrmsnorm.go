package oracle

// AddRMSNorm returns h = x + residual and y = RMSNorm(h, w, eps), the two that a block which
// normalises its input needs of the one before (Xiong et al., "On Layer Normalization in the
// Transformer Architecture", 2020, figure 1b, with RMSNorm). Both are exact: an implementation that
// stores h in a narrow dtype, and normalises what it stored, is off by that rounding.
func AddRMSNorm(x, residual Tensor, w *Tensor, eps float64) (h, y Tensor) {
	h = New(x.Shape...)
	for i, v := range x.Data {
		h.Data[i] = v + residual.Data[i]
	}
	return h, RMSNorm(h, w, eps)
}

// AddRMSNormVJP returns the gradients of ⟨dh, h⟩ + ⟨dy, y⟩ of [AddRMSNorm] with respect to x, residual
// and w. Both summands reach h alone, so they have one gradient: dh plus that of the norm, of
// [RMSNormVJP], with respect to h.
func AddRMSNormVJP(x, residual Tensor, w *Tensor, eps float64, dh, dy Tensor) (dx, dresidual, dw Tensor) {
	h, _ := AddRMSNorm(x, residual, w, eps)
	dx, dw = RMSNormVJP(h, w, eps, dy)
	for i, v := range dh.Data {
		dx.Data[i] += v
	}
	return dx, dx, dw
}
