package oracle

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Differences returns the gradient of ⟨cotangents, f(in)⟩ with respect to the inputs at the positions wrt, by central
// differences of the fourth order. It calls f once, and at least four times for each element of these inputs.
//
// The first step is 2⁻¹⁰ times the standard deviation of the element's row along the last axis (at least 1e-3 of its
// root mean square, at most 1), and at least 2⁻³⁰ of the element. For a row of zeros it is about 1e-9. The truncation
// error falls with the fourth power of the step and the rounding error rises with its inverse. If the rounding error
// may exceed 2⁻²⁷ of the derivative, the step grows up to 2⁻¹⁰ while the derivatives agree. Eight to ten digits are right
// if f has five derivatives. The result is NaN for an element at a kink or jump of f, and for an element that is NaN or
// infinite.
func Differences(f Func, in, cotangents []Tensor, wrt []int) []Tensor {
	return SampledDifferences(f, in, cotangents, wrt, math.MaxInt)
}

// SampledDifferences is [Differences] at limit random elements of each input, and at its first and last element. The
// result is NaN for all other elements. The choice depends only on limit and on the number of elements.
func SampledDifferences(f Func, in, cotangents []Tensor, wrt []int, limit int) []Tensor {
	center := f(in)
	grads := make([]Tensor, len(wrt))
	for k, at := range wrt {
		chosen := sample(len(in[at].Data), limit)
		grads[k] = New(in[at].Shape...)
		eachRowScale(in[at], func(j int, scale float64) {
			grads[k].Data[j] = math.NaN()
			if chosen[j] {
				e := element{f: f, in: in, center: center, u: cotangents, at: at, j: j}
				grads[k].Data[j] = e.derivative(0x1p-10 * max(scale, 0x1p-20*math.Abs(in[at].Data[j])))
			}
		})
	}
	return grads
}

// sample chooses limit of n elements at random, and the first and the last. It chooses all if n is at most limit.
func sample(n, limit int) []bool {
	chosen := make([]bool, n)
	for i, j := range rand.New(rand.NewPCG(uint64(n), 0)).Perm(n) {
		chosen[j] = i < limit || j == 0 || j == n-1
	}
	return chosen
}

// element is element j of in[at], at which f is differentiated. center is f(in), u the cotangents.
type element struct {
	f             Func
	in, center, u []Tensor
	at, j         int
}

// derivative returns the derivative, or NaN at a kink. It starts with a step and multiplies it by 8 while the rounding
// error is large.
func (e element) derivative(step float64) float64 {
	const growth, largest = 8, 0x1p-10
	now := e.estimate(step)
	for now.smooth && now.noisy && growth*step <= largest {
		step *= growth
		next := e.estimate(step)
		if !next.smooth && now.blind {
			return math.NaN()
		}
		if !next.smooth || !(math.Abs(next.value-now.value) <= 4*now.noise) {
			break
		}
		now = next
	}
	if !now.smooth {
		return math.NaN()
	}
	return now.value
}

// estimate is a derivative computed with one step.
type estimate struct {
	value  float64
	noise  float64 // estimate of the rounding error of value
	smooth bool    // no kink was seen
	noisy  bool    // the rounding error may exceed about 2⁻²⁷ of the derivative
	blind  bool    // rounding errors would hide a kink
}

func (e element) estimate(step float64) estimate {
	x := e.in[e.at].Data
	step = x[e.j] + step - x[e.j] // the difference of the rounded elements
	shifted := func(steps float64) []Tensor {
		args := slices.Clone(e.in)
		args[e.at].Data = slices.Clone(x)
		args[e.at].Data[e.j] += steps * step
		return e.f(args)
	}
	right, left, farRight, farLeft := shifted(1), shifted(-1), shifted(2), shifted(-2)
	near := difference(right, left, e.u)
	far := difference(farRight, farLeft, e.u)

	// The second difference f(x+h) − 2·f(x) + f(x−h) grows with h² for a smooth function, and with h at a kink.
	var bend, slope, size float64
	for i := range e.u {
		for j, w := range e.u[i].Data {
			c, r, l, fr, fl := e.center[i].Data[j], right[i].Data[j], left[i].Data[j], farRight[i].Data[j], farLeft[i].Data[j]
			if notFinite := c - c + r - r + l - l + fr - fr + fl - fl; notFinite != 0 {
				continue // difference ignores equal infinities and NaNs, and shows others
			}
			if r == c && l == c && fr == c && fl == c {
				continue // it does not depend on the element, so it has no rounding error
			}
			bend += math.Abs(w * ((fr - c) + (fl - c) - 4*((r-c)+(l-c))))
			slope += math.Abs(w) * (math.Abs(r-c) + math.Abs(l-c))
			size += math.Abs(w * c)
		}
	}
	return estimate{
		value: (8*near - far) / (12 * step),
		noise: 0x1p-52 * size / step,
		// For a smooth f, bend is step⁴·f⁗ and a rounding error of about 2⁻⁵² of size.
		smooth: bend <= 0x1p-20*slope+0x1p-46*size,
		noisy:  0x1p-25*size > slope,
		blind:  0x1p-46*size > 0x1p-6*slope,
	}
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
