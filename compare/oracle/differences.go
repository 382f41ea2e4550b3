package oracle

import "math"

// Differences returns the gradient of ⟨cotangents, f(in)⟩ with respect to the inputs at the positions wrt, by central
// differences of the fourth order. It calls f four times for each element of these inputs.
//
// The step is 2⁻¹⁰ times the scale of the element's row (see eachRowScale), and at least 2⁻³⁰ of the element. For a row
// of zeros it is about 1e-9. The truncation error falls with the fourth power of the step and the rounding error rises
// with its inverse: about ten digits are right if f has five derivatives, and six in a row of zeros. Near a kink or
// jump of f the result is meaningless. For an element that is NaN or infinite it is NaN.
func Differences(f Func, in, cotangents []Tensor, wrt []int) []Tensor {
	grads := make([]Tensor, len(wrt))
	for k, at := range wrt {
		x := in[at]
		grads[k] = New(x.Shape...)
		eachRowScale(x, func(j int, scale float64) {
			// The difference of the rounded elements.
			step := x.Data[j] + 0x1p-10*max(scale, 0x1p-20*math.Abs(x.Data[j])) - x.Data[j]
			shifted := func(steps float64) []Tensor {
				unit := New(x.Shape...)
				unit.Data[j] = 1
				return f(moved(in, at, unit, steps*step))
			}
			near := difference(shifted(1), shifted(-1), cotangents)
			far := difference(shifted(2), shifted(-2), cotangents)
			grads[k].Data[j] = (8*near - far) / (12 * step)
		})
	}
	return grads
}

// difference returns ⟨a − b, u⟩. The difference of equal infinities and of NaNs is 0.
func difference(a, b, u []Tensor) float64 {
	sum := 0.0
	for i := range a {
		for j, v := range a[i].Data {
			if w := b[i].Data[j]; v != w && !(math.IsNaN(v) && math.IsNaN(w)) {
				sum += (v - w) * u[i].Data[j]
			}
		}
	}
	return sum
}

// eachRowScale calls f for every element with the scale of its row along the last axis: the standard deviation of the
// row, at least 1e-3 of its root mean square (below, the rounding of the row would dominate) and at most 1.
func eachRowScale(x Tensor, f func(j int, scale float64)) {
	width := 1
	if len(x.Shape) > 0 {
		width = x.Shape[len(x.Shape)-1]
	}
	for start := 0; start < len(x.Data); start += width {
		row := x.Data[start : start+width]
		mean, square := 0.0, 0.0
		for _, value := range row {
			mean += value / float64(width)
			square += value * value / float64(width)
		}
		deviation := math.Sqrt(max(0, square-mean*mean))
		scale := min(1, max(deviation, 1e-3*math.Sqrt(square)))
		if scale == 0 {
			scale = 1e-6 // for a row of zeros; small against any eps in use
		}
		for j := range row {
			f(start+j, scale)
		}
	}
}
