// Package accuracy measures results against the truth and judges them by the accuracy rule of this project.
//
// The rule compares two implementations that compute in the same dtype, ours and a peer's (MLX's
// built-in gradient), with a float64 oracle. With eps the spacing of the dtype at one,
//
//	max error  ≤ max(2 × the peer's max error,  2·eps·max|oracle|)
//	mean error ≤ max(2 × the peer's mean error, ½·eps·mean|oracle|)
//
// The first term allows for the conditioning of the problem, which affects every implementation. The
// second term, the floor, allows for the rounding of the result if the peer happens to be exact.
package accuracy

import "math"

// Errors holds the absolute errors of a result over all its elements.
type Errors struct {
	// Max and Mean are the largest and the average absolute error. Both are 0 for a result without
	// elements, and +Inf when Misplaced is not 0.
	Max, Mean float64
	// Misplaced counts the elements at which result and truth differ and at least one of them is NaN or infinite.
	Misplaced int
}

// Usable reports whether the errors are finite numbers.
func (e Errors) Usable() bool {
	return !math.IsNaN(e.Max+e.Mean) && !math.IsInf(e.Max+e.Mean, 0)
}

// Measure compares got with the truth, want, element by element. It panics if the lengths differ.
func Measure(got, want []float64) Errors {
	if len(got) != len(want) {
		panic("accuracy: result and truth differ in length")
	}
	var e Errors
	sum := 0.0
	for i := range got {
		d := distance(got[i], want[i])
		if math.IsInf(d, 1) {
			e.Misplaced++
		}
		e.Max = max(e.Max, d)
		sum += d
	}
	if len(got) > 0 {
		e.Mean = sum / float64(len(got))
	}
	return e
}

// Worst returns the position of the largest error, the first one if there are several. There must be an element.
func Worst(got, want []float64) int {
	worst, largest := 0, -1.0
	for i := range got {
		if d := distance(got[i], want[i]); d > largest {
			worst, largest = i, d
		}
	}
	return worst
}

// distance returns |got − want|. It is 0 if both are NaN or the same infinity, and +Inf if only one is.
func distance(got, want float64) float64 {
	switch {
	case math.IsNaN(got) && math.IsNaN(want), got == want:
		return 0
	case !finite(got) || !finite(want):
		return math.Inf(1)
	}
	return math.Abs(got - want)
}

func finite(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0)
}

// Bound holds the errors that the rule allows for one result.
type Bound struct {
	Max, Mean float64 // the largest errors that pass
	// Floor is the part of Max that does not depend on the peer, 2·eps·max|oracle|.
	Floor float64
}

// Allow applies the rule for a dtype with spacing eps. Errors of a peer that are not [Errors.Usable] count as 0, which
// leaves the floor. NaN and infinite elements of want are ignored.
func Allow(eps float64, want []float64, peer Errors) Bound {
	largest, mean := size(want)
	if !peer.Usable() {
		peer = Errors{}
	}
	floor := 2 * eps * largest
	return Bound{
		Max:   max(2*peer.Max, floor),
		Mean:  max(2*peer.Mean, eps*mean/2),
		Floor: floor,
	}
}

// NoBetterThanZero reports whether a result of all zeros would have no larger errors.
func NoBetterThanZero(e Errors, want []float64) bool {
	largest, mean := size(want)
	return e.Max >= largest && e.Mean >= mean && largest > 0
}

// OffByMoreThanRounding reports whether the error of a float32 result exceeds rounding: a thousandth of the largest
// true value.
func OffByMoreThanRounding(e Errors, want []float64) bool {
	largest, _ := size(want)
	return e.Max > largest/1000 && largest > 0
}

// size returns the largest and the average absolute value over the finite elements.
func size(want []float64) (largest, mean float64) {
	n := 0
	for _, v := range want {
		if finite(v) {
			largest = max(largest, math.Abs(v))
			mean += math.Abs(v)
			n++
		}
	}
	if n > 0 {
		mean /= float64(n)
	}
	return largest, mean
}

// Accepts reports whether a result with errors e passes.
func (b Bound) Accepts(e Errors) bool {
	// With NaN in an error the comparison is false.
	return e.Misplaced == 0 && e.Max <= b.Max && e.Mean <= b.Mean
}

// Ratio compares the maximum errors of ours and of the peer: (ours + floor) / (peer + floor). Below 1 ours is the more
// accurate. The floor limits the ratio if one side is exact, so that one case does not dominate a mean. If the truth is
// all zero, the floor is 0, and the ratio is 1 if ours is no worse and +Inf otherwise. It is NaN if the peer's errors
// are not usable.
func Ratio(ours, peer Errors, floor float64) float64 {
	switch {
	case !peer.Usable():
		return math.NaN()
	case floor > 0:
		return (ours.Max + floor) / (peer.Max + floor)
	case ours.Max <= peer.Max:
		return 1
	}
	return math.Inf(1)
}

// GeometricMean returns the geometric mean of the ratios that are not NaN and their number; the
// mean of no ratios is NaN.
func GeometricMean(ratios []float64) (mean float64, n int) {
	sum := 0.0
	for _, r := range ratios {
		if !math.IsNaN(r) {
			sum += math.Log(r)
			n++
		}
	}
	return math.Exp(sum / float64(n)), n
}
