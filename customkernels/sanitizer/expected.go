package sanitizer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/checker"
)

// Expected describes the values of an output after a launch.
type Expected struct {
	Values []float64 // one for each element
	// Tolerance is the largest error, relative to the greatest finite magnitude among Values. 0 means 2ε of a
	// floating-point dtype, where ε is the distance from 1 to the next greater number. Other dtypes must then match
	// exactly.
	Tolerance float64
}

// checkExpected returns an error if an expectation does not fit its output.
func (k *Kernel) checkExpected(l Launch) error {
	for name, e := range l.Expected {
		i := slices.Index(k.Outputs(), name)
		switch {
		case i < 0:
			return fmt.Errorf("values are expected of %s, which is no output: the outputs are %v", name, k.Outputs())
		case l.Outputs[i].DType == Complex64:
			return fmt.Errorf("values are expected of the output %s, and its dtype complex64 is not supported", name)
		case len(e.Values) != sizeOf(l.Outputs[i].Shape):
			return fmt.Errorf("%d values are expected of the output %s, which has %d elements", len(e.Values), name,
				sizeOf(l.Outputs[i].Shape))
		case e.Tolerance < 0 || math.IsNaN(e.Tolerance) || math.IsInf(e.Tolerance, 0):
			return fmt.Errorf("the tolerance of the output %s is %v; it must be positive", name, e.Tolerance)
		}
	}
	return nil
}

// bound returns the largest absolute error of values of a dtype.
func (e Expected) bound(d DType) float64 {
	greatest := 0.0
	for _, v := range e.Values {
		if !math.IsInf(v, 0) && math.Abs(v) > greatest {
			greatest = math.Abs(v)
		}
	}
	if e.Tolerance > 0 {
		return e.Tolerance * greatest
	}
	return 2 * d.epsilon() * greatest
}

// differs reports whether a value is not the expected one. Two NaNs are equal, and so are two equal infinities.
func differs(got, want, bound float64) bool {
	if got == want || math.IsNaN(got) && math.IsNaN(want) {
		return false
	}
	return !(math.Abs(got-want) <= bound) || math.IsInf(want, 0)
}

// wrongValues returns a finding for each output with unexpected values, at the store of the first one.
func (s *checkerRun) wrongValues(
	ctx context.Context, p *checker.Program, l checker.Launch, r *checker.Result, c Config,
) ([]Finding, error) {
	var list []Finding
	for output, data := range r.Outputs {
		name, dtype := s.kernel.Outputs()[output], s.launch.Outputs[output].DType
		e, ok := s.launch.Expected[name]
		if !ok {
			continue
		}
		got := dtype.values(data)
		bound := e.bound(dtype)
		first, count := -1, 0
		for i, v := range got {
			// An expected value that the dtype cannot hold exactly is rounded to it.
			if differs(v, e.Values[i], bound) && differs(v, dtype.values(dtype.Append(nil, e.Values[i]))[0], bound) {
				if count++; first < 0 {
					first = i
				}
			}
		}
		if first < 0 {
			continue
		}
		f := Finding{
			Kind: FindingWrongValue, Severity: FindingWrongValue.Severity(), Kernel: s.kernel.loaded.Name,
			Site: s.kernel.site(), Buffer: name, Element: first, Schedule: scheduleName(0, c.Seed),
		}
		store, err := p.Store(ctx, l, r.Outputs, output, first*dtype.Size(), dtype.Size())
		if err != nil {
			return nil, err
		}
		if store != nil {
			if path := s.sites(store.Path, store.Column); len(path) > 0 {
				f.Site, f.Path = path[0], path[1:]
			}
			f.Threads[0] = s.thread(store.Group, store.Thread)
			f.Threads[1] = f.Threads[0]
		}
		number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, bits(dtype)) }
		f.Message = fmt.Sprintf("%s[%d] is %s, and %s is expected, with an error of at most %.3g; %d of %d elements differ",
			name, first, number(got[first]), number(e.Values[first]), bound, count, len(got))
		list = append(list, f)
	}
	return list, nil
}

// bits returns the precision with which strconv prints a number of a dtype.
func bits(d DType) int {
	if d == Float64 || d.epsilon() == 0 {
		return 64
	}
	return 32
}
