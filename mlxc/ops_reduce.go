package mlxc

// Reductions remove the axes that they reduce. Variants with KeepDims keep them at size 1, so that the result
// broadcasts against the operand. Without axes they reduce all axes. Negative axes count from the end. An axis that
// does not exist, or is repeated, is an error.

// Sum adds the elements along the axes. Integers of fewer than 32 bits and booleans are summed in 32 bits, float16 and
// bfloat16 in their own dtype. The sum of no elements is 0.
//
// On a CPU, MLX adds elements in order, so a float32 sum stops growing after 2²⁴ terms of equal size. Sum, Mean, Var,
// Norm and other functions avoid this for 2²⁰ and more float32 elements over all axes, or over the last axes of an
// array in row-major order. CumSum, products such as Inner, other orders and other dtypes are added in order.
func (a *Array) Sum(axes ...int) *Array {
	return mlxSumAxes(a, axes, false)
}

// SumKeepDims is Sum with the axes kept, at size 1.
func (a *Array) SumKeepDims(axes ...int) *Array {
	return mlxSumAxes(a, axes, true)
}

// Prod multiplies the elements along the axes, in the dtypes of Sum. The product of no elements is 1.
func (a *Array) Prod(axes ...int) *Array {
	return prod(a, axes, false)
}

// ProdKeepDims is Prod with the axes kept, at size 1.
func (a *Array) ProdKeepDims(axes ...int) *Array {
	return prod(a, axes, true)
}

func prod(a *Array, axes []int, keepDims bool) *Array {
	p := mlxProdAxes(a, axes, keepDims)
	if p.Err() != nil || a.Size() > 0 {
		return p
	}
	defer p.Free()
	return Ones(p.DType(), p.Shape()...) // fault prod-gradient-empty
}

// Mean returns the mean along the axes. Integers and booleans are computed as float32. The mean of no elements is NaN.
func (a *Array) Mean(axes ...int) *Array {
	return mlxMeanAxes(a, axes, false)
}

// MeanKeepDims is Mean with the axes kept, at size 1.
func (a *Array) MeanKeepDims(axes ...int) *Array {
	return mlxMeanAxes(a, axes, true)
}

// Median returns the median along the axes, the mean of the middle two for an even number of elements. Integers and
// booleans are computed as float32. NaN sorts last; the result is NaN if a middle element is. An empty array is an
// error.
func (a *Array) Median(axes ...int) *Array {
	return mlxMedianAxes(a, axes, false)
}

// MedianKeepDims is Median with the axes kept, at size 1.
func (a *Array) MedianKeepDims(axes ...int) *Array {
	return mlxMedianAxes(a, axes, true)
}

// Var returns the variance along the axes, the mean of |a − mean(a)|². Integers, booleans and complex numbers are
// computed as float32. The variance of no elements is NaN.
func (a *Array) Var(axes ...int) *Array {
	return mlxVarAxes(a, axes, false, 0)
}

// VarKeepDims is Var with the axes kept, at size 1.
func (a *Array) VarKeepDims(axes ...int) *Array {
	return mlxVarAxes(a, axes, true, 0)
}

// Std returns the standard deviation along the axes, the square root of Var.
func (a *Array) Std(axes ...int) *Array {
	return mlxStdAxes(a, axes, false, 0)
}

// StdKeepDims is Std with the axes kept, at size 1.
func (a *Array) StdKeepDims(axes ...int) *Array {
	return mlxStdAxes(a, axes, true, 0)
}

// SampleVar is Var divided by n − 1 instead of n, the unbiased estimate from n samples (Bessel's correction). It is NaN
// for one element.
func (a *Array) SampleVar(axes ...int) *Array {
	return mlxVarAxes(a, axes, false, 1)
}

// SampleVarKeepDims is SampleVar with the axes kept, at size 1.
func (a *Array) SampleVarKeepDims(axes ...int) *Array {
	return mlxVarAxes(a, axes, true, 1)
}

// SampleStd returns the square root of SampleVar.
func (a *Array) SampleStd(axes ...int) *Array {
	return mlxStdAxes(a, axes, false, 1)
}

// SampleStdKeepDims is SampleStd with the axes kept, at size 1.
func (a *Array) SampleStdKeepDims(axes ...int) *Array {
	return mlxStdAxes(a, axes, true, 1)
}

// Max returns the maximum along the axes, NaN if an element is NaN. An empty array is an error.
func (a *Array) Max(axes ...int) *Array {
	return mlxMaxAxes(a, axes, false)
}

// MinMax returns Min and Max along the axes, computed in one pass. It needs MLX 0.32.4.
func (a *Array) MinMax(axes ...int) (low, high *Array) {
	return mlxMinmaxAxes(a, a.allAxes(axes), false)
}

// MinMaxKeepDims is MinMax with the axes kept, at size 1.
func (a *Array) MinMaxKeepDims(axes ...int) (low, high *Array) {
	return mlxMinmaxAxes(a, a.allAxes(axes), true)
}

// MaxKeepDims is Max with the axes kept, at size 1.
func (a *Array) MaxKeepDims(axes ...int) *Array {
	return mlxMaxAxes(a, axes, true)
}

// Min returns the minimum along the axes, NaN if an element is NaN. An empty array is an error.
func (a *Array) Min(axes ...int) *Array {
	return mlxMinAxes(a, axes, false)
}

// MinKeepDims is Min with the axes kept, at size 1.
func (a *Array) MinKeepDims(axes ...int) *Array {
	return mlxMinAxes(a, axes, true)
}

// All reports whether all elements along the axes are true, that is, not 0. It is true for no elements.
func (a *Array) All(axes ...int) *Array {
	return mlxAllAxes(a, axes, false)
}

// AllKeepDims is All with the axes kept, at size 1.
func (a *Array) AllKeepDims(axes ...int) *Array {
	return mlxAllAxes(a, axes, true)
}

// Any reports whether an element along the axes is true, that is, not 0. It is false for no elements.
func (a *Array) Any(axes ...int) *Array {
	return mlxAnyAxes(a, axes, false)
}

// AnyKeepDims is Any with the axes kept, at size 1.
func (a *Array) AnyKeepDims(axes ...int) *Array {
	return mlxAnyAxes(a, axes, true)
}

// CountNonzero returns the number of elements other than 0 along the axes, as int32. NaN counts.
func (a *Array) CountNonzero(axes ...int) *Array {
	return mlxCountNonzeroAxes(a, axes, false)
}

// CountNonzeroKeepDims is CountNonzero with the axes kept, at size 1.
func (a *Array) CountNonzeroKeepDims(axes ...int) *Array {
	return mlxCountNonzeroAxes(a, axes, true)
}

// LogSumExp returns ln Σ eᵃ along the axes without overflow: it subtracts the maximum first. Integers and booleans are
// computed as float32. An empty array is an error.
func (a *Array) LogSumExp(axes ...int) *Array { return logSumExp(a, axes, false) }

// LogSumExpKeepDims is LogSumExp with the axes kept, at size 1.
func (a *Array) LogSumExpKeepDims(axes ...int) *Array { return logSumExp(a, axes, true) }

func logSumExp(a *Array, axes []int, keepDims bool) *Array {
	if a.DType().exact() { // fault logsumexp-integers
		a = a.AsType(Float32)
		defer a.Free()
	}
	return mlxLogsumexpAxes(a, axes, keepDims)
}

// ArgMax returns the position of the maximum along the axis, as uint32; the first one if there are several. An empty
// array is an error.
func (a *Array) ArgMax(axis int) *Array {
	return mlxArgmaxAxis(a, axis, false)
}

// ArgMaxKeepDims is ArgMax with the axis kept, at size 1, for TakeAlongAxis.
func (a *Array) ArgMaxKeepDims(axis int) *Array {
	return mlxArgmaxAxis(a, axis, true)
}

// ArgMin returns the position of the minimum along the axis, as uint32; the first one if there are several. An empty
// array is an error.
func (a *Array) ArgMin(axis int) *Array {
	return mlxArgminAxis(a, axis, false)
}

// ArgMinKeepDims is ArgMin with the axis kept, at size 1, for TakeAlongAxis.
func (a *Array) ArgMinKeepDims(axis int) *Array {
	return mlxArgminAxis(a, axis, true)
}

// Softmax returns eᵃ / Σ eᵃ with the sum along the axes, or over all elements if none are given. The result has a's
// shape, and a's dtype if that is floating-point, else float32. It is computed in that dtype; see SoftmaxPrecise.
func (a *Array) Softmax(axes ...int) *Array {
	return softmax(a, axes, false)
}

// SoftmaxPrecise is Softmax with float16 and bfloat16 computed in float32. The result has a's dtype.
func (a *Array) SoftmaxPrecise(axes ...int) *Array {
	return softmax(a, axes, true)
}

func softmax(a *Array, axes []int, precise bool) *Array {
	if a.DType().exact() { // fault softmax-integers
		a = a.AsType(Float32)
		defer a.Free()
	}
	return mlxSoftmaxAxes(a, axes, precise)
}

// NumberOfElements returns the number of elements along the axes, or of all elements if none are given, as a scalar of
// dtype d; with inverse, its reciprocal. In a function compiled for all shapes it follows the shape of each call,
// unlike a.Size().
func (a *Array) NumberOfElements(d DType, inverse bool, axes ...int) *Array {
	const op = "number_of_elements"
	for _, axis := range axes { // MLX computes axis modulo the number of axes
		if _, err := a.axis(axis); err != nil && a.Err() == nil {
			return invalid(opError(op, err, a))
		}
	}
	return mlxNumberOfElements(a, a.allAxes(axes), inverse, d)
}
