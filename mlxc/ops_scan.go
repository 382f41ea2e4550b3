package mlxc

import "math"

import "slices"

// Scans give, for every element, a reduction of the elements up to it along an axis. An
// array without elements gives another. Negative axes count from the end.

// ScanConfig says how a scan runs. The zero value runs from the first element to the last
// and takes each one in.
type ScanConfig struct {
	Reverse   bool // from the last element to the first
	Exclusive bool // up to each element, but without it; the first is what no elements give
	// DType is what CumSumWith and CumProdWith compute in; Invalid stands for the
	// array's dtype, and int32 of booleans.
	DType DType
}

// CumSum returns the sums of the elements up to and with each one, along the axis. Bools are
// added up as int32; other dtypes stay, and integers may overflow.
func (a *Array) CumSum(axis int) *Array { return a.CumSumWith(axis, ScanConfig{}) }

// CumSumWith is CumSum as the config says.
func (a *Array) CumSumWith(axis int, c ScanConfig) *Array {
	return mlxCumsumAxis(a, axis, c.Reverse, !c.Exclusive, c.dtype(a)).zerosIfEmpty()
}

// CumProd returns the products of the elements up to and with each one, along the axis. Bools
// are multiplied as int32; other dtypes stay, and integers may overflow.
func (a *Array) CumProd(axis int) *Array { return a.CumProdWith(axis, ScanConfig{}) }

// CumProdWith is CumProd as the config says.
func (a *Array) CumProdWith(axis int, c ScanConfig) *Array {
	return mlxCumprodAxis(a, axis, c.Reverse, !c.Exclusive, c.dtype(a)).zerosIfEmpty()
}

func (c ScanConfig) dtype(a *Array) DType {
	if c.DType == Invalid && a.DType() == Bool {
		return Int32
	}
	return c.DType
}

// CumMax returns the largest of the elements up to and with each one, along the axis; NaN from
// the first NaN on.
func (a *Array) CumMax(axis int) *Array { return a.CumMaxWith(axis, ScanConfig{}) }

// CumMaxWith is CumMax as the config says; its DType does not matter. The largest of no
// elements is −∞, or the least integer.
func (a *Array) CumMaxWith(axis int, c ScanConfig) *Array {
	return c.extreme(a, axis, mlxCummaxAxis)
}

// CumMin returns the smallest of the elements up to and with each one, along the axis; NaN from
// the first NaN on.
func (a *Array) CumMin(axis int) *Array { return a.CumMinWith(axis, ScanConfig{}) }

// CumMinWith is CumMin as the config says; its DType does not matter. The smallest of no
// elements is ∞, or the largest integer.
func (a *Array) CumMinWith(axis int, c ScanConfig) *Array {
	return c.extreme(a, axis, mlxCumminAxis)
}

func (c ScanConfig) extreme(a *Array, axis int, f func(a *Array, axis int, reverse, inclusive bool) *Array) *Array {
	if c.Exclusive && a.Dim(axis) == 1 {
		// It is that of no elements, and MLX's gradient would divide by their number.
		a = a.StopGradient()
		defer a.Free()
	}
	scan := func(a *Array) *Array { return f(a, axis, c.Reverse, !c.Exclusive).zerosIfEmpty() }
	if isComplex := a.DType() == Complex64; !isComplex && (!a.DType().IsFloating() || !a.IsTraced()) {
		return scan(a)
	}
	// MLX's gradient finds the extreme elements by comparisons. Where a NaN makes them fail, it
	// writes to memory that is not the array's. Of complex numbers, MLX's scan goes on behind a NaN.
	checked := scan(a)
	if checked.Err() != nil {
		return checked
	}
	checked.Free()
	var result *Array
	WithScope(func() {
		nan := a.IsNaN()
		seen := mlxCummaxAxis(nan.AsType(Int32), axis, c.Reverse, !c.Exclusive).Greater(Scalar(int32(0)))
		result = Where(seen, Scalar(float32(math.NaN())).AsType(a.DType()), scan(Where(nan, Zeros(a.DType()), a))).Keep()
	})
	return result
}

// LogCumSumExp returns ln Σ eᵃ of the elements up to and with each one, along the axis, without
// overflow. Integers and booleans are computed as float32.
func (a *Array) LogCumSumExp(axis int) *Array { return a.LogCumSumExpWith(axis, ScanConfig{}) }

// LogCumSumExpWith is LogCumSumExp as the config says; its DType does not matter. That of
// no elements is −∞.
func (a *Array) LogCumSumExpWith(axis int, c ScanConfig) *Array {
	if a.DType().exact() { // MLX would give integers
		a = a.AsType(Float32)
		defer a.Free()
	}
	return mlxLogcumsumexpAxis(a, axis, c.Reverse, !c.Exclusive).zerosIfEmpty()
}

// Diff returns the n-th differences along the axis. Each of n steps subtracts from each element
// the one before it and makes the axis one shorter; booleans differ or do not. If n is at least
// the length of the axis, the result has no elements. n = 0 returns a; a negative n is an error.
// Negative axes count from the end.
func (a *Array) Diff(n, axis int) *Array {
	if at, err := a.axis(axis); err == nil && n > 0 && n >= a.Dim(at) {
		stop := a.Shape()
		stop[at] = 0
		return a.Slice(make([]int, len(stop)), stop, slices.Repeat([]int{1}, len(stop)))
	}
	return mlxDiff(a, n, axis)
}
