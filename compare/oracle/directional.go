package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Func maps the inputs of an operation to its outputs.
type Func func(in []Tensor) []Tensor

// Gradient maps the inputs of an operation and the cotangents of its outputs to the gradients,
// one for each input that is differentiated, in the order of the inputs.
type Gradient func(in, cotangents []Tensor) []Tensor

// CheckDirectional tests gradient against f, and so against nothing that a kernel uses. For random
// directions v and cotangents u it requires ⟨J·v, u⟩ = ⟨v, Jᵀ·u⟩, where J·v is taken from f alone
// by central differences of the fourth order. The inputs listed in fixed, by position, are not
// differentiated and have no gradient.
//
// Directions are as large as what varies in the row that they move, so that a step is small against
// every row of an input whose rows differ by orders of magnitude, and at most 1, against which an
// exponential is to be small. Both sides are sums of terms that may cancel, so the tolerance is
// relative to the sum of the terms' sizes.
func CheckDirectional(f Func, gradient Gradient, in []Tensor, fixed map[int]bool, rng *rand.Rand) error {
	const (
		// The truncation error falls with step⁴ and the rounding error rises with 1/step; they
		// meet near 2^-52/5, which leaves about eleven digits. A formula with a wrong sign, factor or
		// missing term is off in the first few.
		step      = 1e-3
		tolerance = 1e-7
	)
	cotangents := like(f(in), rng)
	grads := gradient(in, cotangents)

	for k, at := range differentiated(len(in), fixed) {
		if k >= len(grads) {
			return fmt.Errorf("%d gradients for %d differentiated inputs", len(grads), len(in)-len(fixed))
		}
		x := in[at]
		if grads[k].String() != x.String() {
			return fmt.Errorf("gradient of input %d is %v, want %v", at, grads[k], x)
		}
		v := direction(x, rng)
		// f(x+h) − f(x−h) and f(x+2h) − f(x−2h), weighted so that the third derivative cancels.
		var left, size float64
		for _, term := range []struct{ at, weight float64 }{
			{1, 8.0 / 12}, {-1, -8.0 / 12}, {2, -1.0 / 12}, {-2, 1.0 / 12},
		} {
			sum, abs := inner(f(moved(in, at, v, step*term.at)), cotangents)
			left += term.weight * sum / step
			size += math.Abs(term.weight) * abs / step
		}
		right, abs := inner([]Tensor{v}, grads[k:k+1])
		// Rounding in f shows up as 2^-52 of the outputs' size over the step.
		allowed := tolerance*(abs+math.Abs(left)) + 0x1p-46*size
		if diff := math.Abs(left - right); !(diff <= allowed) {
			return fmt.Errorf("gradient of input %d: ⟨J·v, u⟩ = %.12g but ⟨v, Jᵀ·u⟩ = %.12g, apart by %.3g, allowed %.3g",
				at, left, right, diff, allowed)
		}
	}
	return nil
}

// differentiated lists the positions below n that are not in fixed.
func differentiated(n int, fixed map[int]bool) []int {
	var at []int
	for i := range n {
		if !fixed[i] {
			at = append(at, i)
		}
	}
	return at
}

// like returns random tensors with the shapes of ts.
func like(ts []Tensor, rng *rand.Rand) []Tensor {
	out := make([]Tensor, len(ts))
	for i, t := range ts {
		out[i] = New(t.Shape...)
		for j := range out[i].Data {
			out[i].Data[j] = rng.NormFloat64()
		}
	}
	return out
}

// direction returns a random tensor of x's shape, every row of which is of the size of the deviation
// of x's row, where that is not too small for x's own rounding, and at most 1.
func direction(x Tensor, rng *rand.Rand) Tensor {
	v := like([]Tensor{x}, rng)[0]
	eachRowScale(x, func(j int, scale float64) { v.Data[j] *= scale })
	return v
}

// moved returns in with h·v added to the tensor at position k.
func moved(in []Tensor, k int, v Tensor, h float64) []Tensor {
	out := append([]Tensor(nil), in...)
	out[k] = New(v.Shape...)
	for j := range v.Data {
		out[k].Data[j] = in[k].Data[j] + h*v.Data[j]
	}
	return out
}

// inner returns ⟨a, b⟩ over all tensors, and the same with the absolute value of every term.
func inner(a, b []Tensor) (sum, abs float64) {
	for i := range a {
		for j := range a[i].Data {
			term := a[i].Data[j] * b[i].Data[j]
			sum += term
			abs += math.Abs(term)
		}
	}
	return sum, abs
}
