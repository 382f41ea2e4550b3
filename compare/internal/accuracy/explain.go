package accuracy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Explain describes, in a few lines, a result outside the bound: the number of wrong elements, the largest absolute and
// the largest relative difference with their indices along the axes of shape, and the mean error. It returns "" for a
// result within the bound.
func Explain(got, want []float64, shape []int, bound Bound) string {
	errs := Measure(got, want)
	if bound.Accepts(errs) {
		return ""
	}
	var lines []string
	if s := explainMisplaced(got, want, shape, errs.Misplaced); s != "" {
		lines = append(lines, s)
	}
	lines = append(lines, explainElements(got, want, shape, bound)...)
	if errs.Misplaced == 0 && !(errs.Mean <= bound.Mean) {
		lines = append(lines, fmt.Sprintf("mean error %.3g, allowed %.3g", errs.Mean, bound.Mean))
	}
	return strings.Join(lines, "\n")
}

// explainMisplaced describes the elements at which only one side is NaN or infinite.
func explainMisplaced(got, want []float64, shape []int, n int) string {
	for i := range got {
		if math.IsInf(distance(got[i], want[i]), 1) {
			return fmt.Sprintf("NaN or infinity out of place in %s, first at %s: got %v, want %v",
				share(n, len(got)), Index(i, shape), got[i], want[i])
		}
	}
	return ""
}

// explainElements describes the finite elements whose error exceeds the bound.
func explainElements(got, want []float64, shape []int, bound Bound) []string {
	missed, farthest, relative := 0, -1, -1
	var farthestBy, relativeBy float64
	for i := range got {
		d := distance(got[i], want[i])
		if math.IsInf(d, 1) || d <= bound.Max {
			continue
		}
		missed++
		if farthest < 0 || d > farthestBy {
			farthest, farthestBy = i, d
		}
		if r := d / math.Abs(want[i]); relative < 0 || r > relativeBy {
			relative, relativeBy = i, r
		}
	}
	if missed == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf("off by more than %.3g in %s", bound.Max, share(missed, len(got))),
		fmt.Sprintf("greatest absolute difference %.3g at %s: got %.6g, want %.6g",
			farthestBy, Index(farthest, shape), got[farthest], want[farthest]),
		fmt.Sprintf("greatest relative difference %.3g at %s: got %.6g, want %.6g",
			relativeBy, Index(relative, shape), got[relative], want[relative]),
	}
}

// share returns, for example, "3 of 12 elements (25.0%)".
func share(n, of int) string {
	return fmt.Sprintf("%d of %d elements (%.1f%%)", n, of, 100*float64(n)/float64(of))
}

// Index writes a position in row-major order as indices along the axes, such as "[3, 17]".
func Index(at int, shape []int) string {
	out := make([]string, len(shape))
	for axis := len(shape) - 1; axis >= 0; axis-- {
		out[axis] = strconv.Itoa(at % shape[axis])
		at /= shape[axis]
	}
	return "[" + strings.Join(out, ", ") + "]"
}
