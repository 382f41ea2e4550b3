package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Func maps the inputs of an operation to its outputs. It must not change the inputs.
type Func func(in []Tensor) []Tensor

// Gradient maps the inputs of an operation and the cotangents of its outputs to the gradients, one for each
// differentiated input in the order of the inputs. It must not change its arguments.
type Gradient func(in, cotangents []Tensor) []Tensor

// CheckDirectional returns an error unless gradient is the gradient of f. For random directions v and cotangents u it
// requires ⟨J·v, u⟩ = ⟨v, Jᵀ·u⟩, where J·v is computed from f alone, by central differences of the fourth order. Inputs
// at the positions in fixed are not differentiated and have no gradient.
//
// The size of a direction in a row is the standard deviation of the row, but at least 1e-3 of its root mean square and at
// most 1. A step is then small against every row of an input whose rows differ by orders of magnitude, and small against
// the argument of an exponential. Both sides are sums of terms that may cancel, so the tolerance is relative to the sum of
// the absolute terms.
func CheckDirectional(f Func, gradient Gradient, in []Tensor, fixed map[int]bool, rng *rand.Rand) error {
	const (
		// The truncation error falls with step⁴ and the rounding error rises with 1/step. They are equal near
		// 2^(-52/5), which leaves about eleven digits. A wrong sign, factor or term changes the first few.
		step      = 1e-3
		tolerance = 1e-7
	)
	cotangents := like(f(in), rng)
	grads := gradient(in, cotangents)

	for k, at := range differentiated(len(in), fixed) {
		if k >= len(grads) {
			return fmt.Errorf("there are %d gradients; there must be %d, one for each differentiated input",
				len(grads), len(in)-len(fixed))
		}
		x := in[at]
		if grads[k].String() != x.String() {
			return fmt.Errorf("the gradient of input %d is %v; it must be %v", at, grads[k], x)
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
		// The rounding error of f is 2^-52 of the outputs, divided by the step.
		allowed := tolerance*(abs+math.Abs(left)) + 0x1p-46*size
		if diff := math.Abs(left - right); !(diff <= allowed) {
			return fmt.Errorf("gradient of input %d: ⟨J·v, u⟩ = %.12g and ⟨v, Jᵀ·u⟩ = %.12g differ by %.3g; "+
				"%.3g is allowed", at, left, right, diff, allowed)
		}
	}
	return nil
}

// differentiated returns the positions below n that are not in fixed.
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

// direction returns a random tensor of x's shape whose rows have the scales of x's rows (see eachRowScale).
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

// inner returns ⟨a, b⟩ over all tensors, and the sum of the absolute values of its terms.
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
