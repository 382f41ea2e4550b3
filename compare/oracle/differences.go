package oracle

import (
	"math"
	"slices"
)

// Differences returns the gradient of ⟨cotangents, f(in)⟩ with respect to the inputs at the positions wrt, by central
// differences of the fourth order. It calls f once, and four times for each element of these inputs.
//
// The step is 2⁻¹⁰ times the standard deviation of the element's row along the last axis (at least 1e-3 of its root
// mean square, at most 1), and at least 2⁻³⁰ of the element. For a row of zeros it is about 1e-9. The truncation error
// falls with the fourth power of the step and the rounding error rises with its inverse: about ten digits are right if
// f has five derivatives, and six in a row of zeros. The result is NaN for an element at a kink or jump of f, and for
// an element that is NaN or infinite.
func Differences(f Func, in, cotangents []Tensor, wrt []int) []Tensor {
	center := f(in)
	grads := make([]Tensor, len(wrt))
	for k, at := range wrt {
		x := in[at]
		grads[k] = New(x.Shape...)
		eachRowScale(x, func(j int, scale float64) {
			// The difference of the rounded elements.
			step := x.Data[j] + 0x1p-10*max(scale, 0x1p-20*math.Abs(x.Data[j])) - x.Data[j]
			shifted := func(steps float64) []Tensor {
				args := slices.Clone(in)
				args[at].Data = slices.Clone(x.Data)
				args[at].Data[j] += steps * step
				return f(args)
			}
			right, left, farRight, farLeft := shifted(1), shifted(-1), shifted(2), shifted(-2)
			near := difference(right, left, cotangents)
			far := difference(farRight, farLeft, cotangents)
			grads[k].Data[j] = (8*near - far) / (12 * step)
			if !smooth(center, right, left, farRight, farLeft, cotangents) {
				grads[k].Data[j] = math.NaN()
			}
		})
	}
	return grads
}

// smooth reports whether a function is smooth near x. The arguments are its values at x, x ± step and x ± 2·step, and the
// cotangents u. The second difference f(x+h) − 2·f(x) + f(x−h) grows with h² for a smooth function, and with h at a kink.
func smooth(center, right, left, farRight, farLeft, u []Tensor) bool {
	var bend, slope, size float64
	for i := range u {
		for j, w := range u[i].Data {
			c, r, l, fr, fl := center[i].Data[j], right[i].Data[j], left[i].Data[j], farRight[i].Data[j], farLeft[i].Data[j]
			if notFinite := c - c + r - r + l - l + fr - fr + fl - fl; notFinite != 0 {
				continue // difference ignores equal infinities and NaNs, and shows others
			}
			bend += math.Abs(w * ((fr - c) + (fl - c) - 4*((r-c)+(l-c))))
			slope += math.Abs(w) * (math.Abs(r-c) + math.Abs(l-c))
			size += math.Abs(w * c)
		}
	}
	// For a smooth f, bend is step⁴·f⁗ and a rounding error of about 2⁻⁵² of size.
	return bend <= 0x1p-20*slope+0x1p-46*size
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
