package oracle

// RMSNormResidual returns residual + RMSNorm(x, w, eps): a block's output is normalized before it is added to the
// residual stream (the sandwich norm of Ding et al., "CogView", 2021, with RMSNorm).
func RMSNormResidual(x, residual Tensor, w *Tensor, eps float64) Tensor {
	y := RMSNorm(x, w, eps)
	for i, v := range residual.Data {
		y.Data[i] += v
	}
	return y
}

// RMSNormResidualVJP returns the gradients of ⟨dy, RMSNormResidual(x, residual, w)⟩ with respect to x, residual and w.
// The gradient of residual is dy itself; for the others see [RMSNormVJP].
func RMSNormResidualVJP(x Tensor, w *Tensor, eps float64, dy Tensor) (dx, dresidual, dw Tensor) {
	dx, dw = RMSNormVJP(x, w, eps, dy)
	return dx, dy, dw
}
