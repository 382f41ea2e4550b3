package mlxc

// Reductions take the axes away that they work over, or with KeepDims in their name leave
// them with size 1, so that the result broadcasts against the operand. They work over all
// axes if none are given. Negative axes count from the end; an axis that is not there, or
// is named twice, is an error.

// Sum adds up over the axes, or all axes if none are given. Small integers and
// booleans are added up in 32 bits, float16 and bfloat16 in their own dtype. No
// elements give 0.
func (a *Array) Sum(axes ...int) *Array {
	return mlxSumAxes(a, axes, false)
}

// SumKeepDims is Sum with the axes kept, at size 1.
func (a *Array) SumKeepDims(axes ...int) *Array {
	return mlxSumAxes(a, axes, true)
}

// Prod multiplies over the axes, or all axes if none are given, in the dtypes of Sum.
// No elements give 1.
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
	return Ones(p.DType(), p.Shape()...) // in whose derivative MLX would divide by their number
}

// Mean averages over the axes, or all axes if none are given; integers and booleans
// as float32. No elements give NaN.
func (a *Array) Mean(axes ...int) *Array {
	return mlxMeanAxes(a, axes, false)
}

// MeanKeepDims is Mean with the axes kept, at size 1.
func (a *Array) MeanKeepDims(axes ...int) *Array {
	return mlxMeanAxes(a, axes, true)
}

// Median gives the middle one of the sorted elements over the axes, or of an even number
// the mean of the two in the middle; integers and booleans as float32. Without axes it works
// over all. It is NaN if an element that it takes is NaN; NaNs are sorted to the end. No
// elements are an error.
func (a *Array) Median(axes ...int) *Array {
	return mlxMedianAxes(a, axes, false)
}

// MedianKeepDims is Median with the axes kept, at size 1.
func (a *Array) MedianKeepDims(axes ...int) *Array {
	return mlxMedianAxes(a, axes, true)
}

// Var gives the variance over the axes, or all axes if none are given: the mean of
// |a − mean(a)|²; integers, booleans and complex numbers as float32. No elements give NaN.
func (a *Array) Var(axes ...int) *Array {
	return mlxVarAxes(a, axes, false, 0)
}

// VarKeepDims is Var with the axes kept, at size 1.
func (a *Array) VarKeepDims(axes ...int) *Array {
	return mlxVarAxes(a, axes, true, 0)
}

// Std gives the standard deviation over the axes, or all axes if none are given: the
// square root of Var.
func (a *Array) Std(axes ...int) *Array {
	return mlxStdAxes(a, axes, false, 0)
}

// StdKeepDims is Std with the axes kept, at size 1.
func (a *Array) StdKeepDims(axes ...int) *Array {
	return mlxStdAxes(a, axes, true, 0)
}

// SampleVar is Var with n − 1 in the place of n, the estimate of a variance from n samples
// (Bessel's correction). One element gives NaN.
func (a *Array) SampleVar(axes ...int) *Array {
	return mlxVarAxes(a, axes, false, 1)
}

// SampleVarKeepDims is SampleVar with the axes kept, at size 1.
func (a *Array) SampleVarKeepDims(axes ...int) *Array {
	return mlxVarAxes(a, axes, true, 1)
}

// SampleStd gives the square root of SampleVar.
func (a *Array) SampleStd(axes ...int) *Array {
	return mlxStdAxes(a, axes, false, 1)
}

// SampleStdKeepDims is SampleStd with the axes kept, at size 1.
func (a *Array) SampleStdKeepDims(axes ...int) *Array {
	return mlxStdAxes(a, axes, true, 1)
}

// Max gives the largest element over the axes, or all axes if none are given; NaN if
// there is one. An array without elements is an error.
func (a *Array) Max(axes ...int) *Array {
	return mlxMaxAxes(a, axes, false)
}

// MaxKeepDims is Max with the axes kept, at size 1.
func (a *Array) MaxKeepDims(axes ...int) *Array {
	return mlxMaxAxes(a, axes, true)
}

// Min gives the smallest element over the axes, or all axes if none are given; NaN if
// there is one. An array without elements is an error.
func (a *Array) Min(axes ...int) *Array {
	return mlxMinAxes(a, axes, false)
}

// MinKeepDims is Min with the axes kept, at size 1.
func (a *Array) MinKeepDims(axes ...int) *Array {
	return mlxMinAxes(a, axes, true)
}

// All reports whether every element over the axes, or all axes if none are given, is true,
// which is: not 0. It is true of no elements.
func (a *Array) All(axes ...int) *Array {
	return mlxAllAxes(a, axes, false)
}

// AllKeepDims is All with the axes kept, at size 1.
func (a *Array) AllKeepDims(axes ...int) *Array {
	return mlxAllAxes(a, axes, true)
}

// Any reports whether some element over the axes, or all axes if none are given, is true,
// which is: not 0. It is false of no elements.
func (a *Array) Any(axes ...int) *Array {
	return mlxAnyAxes(a, axes, false)
}

// AnyKeepDims is Any with the axes kept, at size 1.
func (a *Array) AnyKeepDims(axes ...int) *Array {
	return mlxAnyAxes(a, axes, true)
}

// CountNonzero counts the elements that are not 0 over the axes, or all axes if none are
// given, as int32; NaN is not 0.
func (a *Array) CountNonzero(axes ...int) *Array {
	return mlxCountNonzeroAxes(a, axes, false)
}

// CountNonzeroKeepDims is CountNonzero with the axes kept, at size 1.
func (a *Array) CountNonzeroKeepDims(axes ...int) *Array {
	return mlxCountNonzeroAxes(a, axes, true)
}

// LogSumExp returns ln Σ eᵃ over the axes, or all axes if none are given, without
// overflow: the largest element is subtracted first. Integers and booleans are
// computed as float32. An array without elements is an error.
func (a *Array) LogSumExp(axes ...int) *Array { return logSumExp(a, axes, false) }

// LogSumExpKeepDims is LogSumExp with the axes kept, at size 1.
func (a *Array) LogSumExpKeepDims(axes ...int) *Array { return logSumExp(a, axes, true) }

func logSumExp(a *Array, axes []int, keepDims bool) *Array {
	if a.DType().exact() { // MLX would subtract in their dtype
		a = a.AsType(Float32)
		defer a.Free()
	}
	return mlxLogsumexpAxes(a, axes, keepDims)
}

// ArgMax returns the position of the largest element along the axis, as uint32; the first one
// of equals. An array without elements is an error.
func (a *Array) ArgMax(axis int) *Array {
	return mlxArgmaxAxis(a, axis, false)
}

// ArgMaxKeepDims is ArgMax with the axis kept, at size 1, as TakeAlongAxis wants it.
func (a *Array) ArgMaxKeepDims(axis int) *Array {
	return mlxArgmaxAxis(a, axis, true)
}

// ArgMin returns the position of the smallest element along the axis, as uint32; the first one
// of equals. An array without elements is an error.
func (a *Array) ArgMin(axis int) *Array {
	return mlxArgminAxis(a, axis, false)
}

// ArgMinKeepDims is ArgMin with the axis kept, at size 1, as TakeAlongAxis wants it.
func (a *Array) ArgMinKeepDims(axis int) *Array {
	return mlxArgminAxis(a, axis, true)
}

// Softmax returns eᵃ / Σ eᵃ, the sum being over the axes, or all axes if none are given.
// The result has a's shape, and a's dtype if that is a floating-point one, else float32.
// MLX computes in that dtype; SoftmaxPrecise does not.
func (a *Array) Softmax(axes ...int) *Array {
	return softmax(a, axes, false)
}

// SoftmaxPrecise is Softmax computed in float32 where a's dtype is a half one. The
// result has a's dtype all the same.
func (a *Array) SoftmaxPrecise(axes ...int) *Array {
	return softmax(a, axes, true)
}

func softmax(a *Array, axes []int, precise bool) *Array {
	if a.DType().exact() { // MLX would give integers, where it is not over the last axis
		a = a.AsType(Float32)
		defer a.Free()
	}
	return mlxSoftmaxAxes(a, axes, precise)
}

// NumberOfElements returns the number of elements over the axes, or over all if none are
// given, as a scalar of dtype d; with inverse, one divided by it. In a function compiled
// for any shape it follows the shape of every call, which a.Size() cannot.
func (a *Array) NumberOfElements(d DType, inverse bool, axes ...int) *Array {
	const op = "number_of_elements"
	for _, axis := range axes { // MLX divides by the number of axes
		if _, err := a.axis(axis); err != nil && a.Err() == nil {
			return invalid(opError(op, err, a))
		}
	}
	return mlxNumberOfElements(a, a.allAxes(axes), inverse, d)
}
