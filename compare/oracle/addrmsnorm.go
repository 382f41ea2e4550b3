package oracle

// AddRMSNorm returns h = x + residual and y = RMSNorm(h, w, eps), the residual stream and the input of the next block
// in a transformer with norms before its blocks (Xiong et al., "On Layer Normalization in the Transformer
// Architecture", 2020, figure 1b, with RMSNorm). h is not rounded. The y of an implementation that stores h in a narrow
// dtype and normalizes the stored values differs by that rounding.
func AddRMSNorm(x, residual Tensor, w *Tensor, eps float64) (h, y Tensor) {
	h = New(x.Shape...)
	for i, v := range x.Data {
		h.Data[i] = v + residual.Data[i]
	}
	return h, RMSNorm(h, w, eps)
}

// AddRMSNormVJP returns the gradients of ⟨dh, h⟩ + ⟨dy, y⟩ of [AddRMSNorm] with respect to x, residual and w. x and
// residual only occur in their sum h, so they have the same gradient: dh plus the dx of [RMSNormVJP] at h. dx and
// dresidual share their data.
func AddRMSNormVJP(x, residual Tensor, w *Tensor, eps float64, dh, dy Tensor) (dx, dresidual, dw Tensor) {
	h, _ := AddRMSNorm(x, residual, w, eps)
	dx, dw = RMSNormVJP(h, w, eps, dy)
	for i, v := range dh.Data {
		dx.Data[i] += v
	}
	return dx, dx, dw
}
