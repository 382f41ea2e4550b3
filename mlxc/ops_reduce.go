package mlxc

// Reductions take the axes away that they work over.

// Sum adds up over the axes, or over all if none are given.
func (a *Array) Sum(axes ...int) *Array {
	return mlxSumAxes(a, a.allAxes(axes), false)
}

// Mean averages over the axes, or over all if none are given.
func (a *Array) Mean(axes ...int) *Array {
	return mlxMeanAxes(a, a.allAxes(axes), false)
}

// Max gives the largest element over the axes, or over all if none are given.
func (a *Array) Max(axes ...int) *Array {
	return mlxMaxAxes(a, a.allAxes(axes), false)
}

// Min gives the smallest element over the axes, or over all if none are given.
func (a *Array) Min(axes ...int) *Array {
	return mlxMinAxes(a, a.allAxes(axes), false)
}

// Prod multiplies over the axes, or over all if none are given.
func (a *Array) Prod(axes ...int) *Array {
	return mlxProdAxes(a, a.allAxes(axes), false)
}

// All reports whether every element over the axes, or over all if none are given, is
// true, which is: not 0. It is true of no elements.
func (a *Array) All(axes ...int) *Array {
	return mlxAllAxes(a, a.allAxes(axes), false)
}

// Any reports whether some element over the axes, or over all if none are given, is
// true, which is: not 0. It is false of no elements.
func (a *Array) Any(axes ...int) *Array {
	return mlxAnyAxes(a, a.allAxes(axes), false)
}

// LogSumExp returns ln Σ eᵃ over the axes, or over all if none are given, without
// overflow: the largest element is subtracted first.
func (a *Array) LogSumExp(axes ...int) *Array {
	return mlxLogsumexpAxes(a, a.allAxes(axes), false)
}

// ArgMax returns the position of the largest element along the axis, as uint32; the
// first one of equals.
func (a *Array) ArgMax(axis int) *Array {
	return mlxArgmaxAxis(a, axis, false)
}

// Softmax returns eᵃ / Σ eᵃ, the sum being over the axes, or over all if none are
// given. The result has a's shape, and a's dtype if that is a floating-point one, else
// float32. MLX computes in that dtype; SoftmaxPrecise does not.
func (a *Array) Softmax(axes ...int) *Array {
	return mlxSoftmaxAxes(a, a.allAxes(axes), false)
}

// SoftmaxPrecise is Softmax computed in float32 where a's dtype is a half one. The
// result has a's dtype all the same.
func (a *Array) SoftmaxPrecise(axes ...int) *Array {
	return mlxSoftmaxAxes(a, a.allAxes(axes), true)
}

// CumSum returns the sums of the elements up to and with each one, along the axis.
func (a *Array) CumSum(axis int) *Array {
	return mlxCumsumAxis(a, axis, false, true, Invalid).orNothing()
}
