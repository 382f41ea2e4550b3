package mlxc

import (
	"math"
	"slices"
)

// Scans return, for every element, a reduction of the elements up to it along an axis. The scan of an empty array is
// empty. Negative axes count from the end.

// ScanConfig holds the options of a scan. The zero value is an inclusive scan from the first element to the last.
type ScanConfig struct {
	Reverse   bool // from the last element to the first
	Exclusive bool // excludes the element itself; the first result is the reduction of no elements
	// DType is the dtype of CumSumWith and CumProdWith. Invalid stands for the array's dtype, or int32 for booleans.
	// Other scans ignore it.
	DType DType
}

// CumSum returns the cumulative sums along the axis. Booleans are summed as int32. Other dtypes stay, and integers may
// overflow.
func (a *Array) CumSum(axis int) *Array { return a.CumSumWith(axis, ScanConfig{}) }

// CumSumWith is CumSum with options.
func (a *Array) CumSumWith(axis int, c ScanConfig) *Array {
	return mlxCumsumAxis(a, axis, c.Reverse, !c.Exclusive, c.dtype(a)).zerosIfEmpty()
}

// CumProd returns the cumulative products along the axis. Booleans are multiplied as int32. Other dtypes stay, and
// integers may overflow.
func (a *Array) CumProd(axis int) *Array { return a.CumProdWith(axis, ScanConfig{}) }

// CumProdWith is CumProd with options.
func (a *Array) CumProdWith(axis int, c ScanConfig) *Array {
	return mlxCumprodAxis(a, axis, c.Reverse, !c.Exclusive, c.dtype(a)).zerosIfEmpty()
}

func (c ScanConfig) dtype(a *Array) DType {
	if c.DType == Invalid && a.DType() == Bool {
		return Int32
	}
	return c.DType
}

// CumMax returns the cumulative maxima along the axis, NaN from the first NaN on.
func (a *Array) CumMax(axis int) *Array { return a.CumMaxWith(axis, ScanConfig{}) }

// CumMaxWith is CumMax with options. The maximum of no elements is −∞, or the minimum integer.
func (a *Array) CumMaxWith(axis int, c ScanConfig) *Array {
	return c.extreme(a, axis, mlxCummaxAxis)
}

// CumMin returns the cumulative minima along the axis, NaN from the first NaN on.
func (a *Array) CumMin(axis int) *Array { return a.CumMinWith(axis, ScanConfig{}) }

// CumMinWith is CumMin with options. The minimum of no elements is ∞, or the maximum integer.
func (a *Array) CumMinWith(axis int, c ScanConfig) *Array {
	return c.extreme(a, axis, mlxCumminAxis)
}

func (c ScanConfig) extreme(a *Array, axis int, f func(a *Array, axis int, reverse, inclusive bool) *Array) *Array {
	if d := a.DType(); d == Float16 || d == BFloat16 {
		wide := a.AsType(Float32) // fault cummax-half-nan
		defer wide.Free()
		result := c.extreme(wide, axis, f)
		defer result.Free()
		return result.AsType(d)
	}
	if c.Exclusive && a.Dim(axis) == 1 {
		// The only result is the reduction of no elements; MLX's gradient would divide by their number (fault
		// cummax-gradient-exclusive).
		a = a.StopGradient()
		defer a.Free()
	}
	scan := func(a *Array) *Array { return f(a, axis, c.Reverse, !c.Exclusive).zerosIfEmpty() }
	if isComplex := a.DType() == Complex64; !isComplex && (!a.DType().IsFloating() || !a.IsTraced()) {
		return scan(a)
	}
	// MLX's gradient finds the extreme elements by comparison. With a NaN the comparison fails, and the gradient writes
	// outside the array (fault cummax-gradient-nan). For complex numbers, MLX's scan continues after a NaN (fault
	// cummax-complex-nan).
	checked := scan(a)
	if checked.Err() != nil {
		return checked
	}
	checked.Free()
	var result *Array
	WithScope(func() {
		nan := a.IsNaN()
		seen := mlxCummaxAxis(nan.AsType(Int32), axis, c.Reverse, !c.Exclusive).Greater(Scalar(int32(0)))
		result = Where(seen, Scalar(float32(math.NaN())).AsType(a.DType()),
			scan(Where(nan, Zeros(a.DType()), a))).Keep()
	})
	return result
}

// LogCumSumExp returns ln Σ eᵃ of the elements up to each one along the axis, without overflow. Integers and booleans
// are computed as float32.
func (a *Array) LogCumSumExp(axis int) *Array { return a.LogCumSumExpWith(axis, ScanConfig{}) }

// LogCumSumExpWith is LogCumSumExp with options. The result for no elements is −∞.
func (a *Array) LogCumSumExpWith(axis int, c ScanConfig) *Array {
	if a.DType().exact() { // fault logcumsumexp-integers
		a = a.AsType(Float32)
		defer a.Free()
	}
	return mlxLogcumsumexpAxis(a, axis, c.Reverse, !c.Exclusive).zerosIfEmpty()
}

// Diff returns the n-th differences along the axis. Each of n steps subtracts from each element its predecessor, which
// shortens the axis by one; for booleans it compares them. If n is at least the size of the axis, the result is empty.
// n = 0 returns a; a negative n is an error. A negative axis counts from the end.
func (a *Array) Diff(n, axis int) *Array {
	if at, err := a.axis(axis); err == nil && n > 0 && n >= a.Dim(at) {
		stop := a.Shape()
		stop[at] = 0
		return a.Slice(make([]int, len(stop)), stop, slices.Repeat([]int{1}, len(stop)))
	}
	return mlxDiff(a, n, axis)
}
