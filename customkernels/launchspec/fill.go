package launchspec

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

// A Fill describes the elements of an input. The zero Fill is FillNormal.
type Fill struct {
	Kind FillKind
	// Low and High are the bounds of FillIntegers, both inclusive.
	Low, High int
	// Values are the elements of FillValues: one for all, or one for each.
	Values []float64
	// File is the name of the file of FillFile.
	File string

	data []byte // elements of FillFile after [Spec.ReadFiles]
}

// FillKind is a distribution or sequence of elements.
type FillKind uint8

// The kinds of fills.
const (
	FillNormal   FillKind = iota // standard normal random numbers
	FillUniform                  // random numbers from [0, 1)
	FillIntegers                 // random integers
	FillIota                     // 0, 1, 2, …
	FillValues                   // given numbers
	FillFile                     // elements of a file
)

// isReal reports whether d is a floating-point or complex dtype.
func isReal(d sanitizer.DType) bool { return d >= sanitizer.Float16 }

// parseFill reads a fill of an input.
func parseFill(text string, in Input) (Fill, error) {
	switch text {
	case "":
		switch {
		case isReal(in.DType):
			if _, _, ok := normalized(in.DType); ok {
				return Fill{Kind: FillUniform}, nil
			}
			return Fill{}, nil
		case in.DType == sanitizer.Bool:
			return Fill{Kind: FillIntegers, Low: 0, High: 1}, nil
		}
		return Fill{Kind: FillIntegers, Low: 0, High: 9}, nil
	case "normal", "uniform":
		if !isReal(in.DType) {
			return Fill{}, fmt.Errorf("%s is for floating-point dtypes: write LOW..HIGH for integers", text)
		}
		if text == "uniform" {
			return Fill{Kind: FillUniform}, nil
		}
		return Fill{}, nil
	case "iota":
		if last := max(in.size()-1, 0); checkValue(float64(last), in.DType) != nil {
			return Fill{}, fmt.Errorf("iota ends at %d, which %v cannot hold: use a wider dtype", last, in.DType)
		}
		return Fill{Kind: FillIota}, nil
	case "zeros":
		return Fill{Kind: FillValues, Values: []float64{0}}, nil
	case "ones":
		return Fill{Kind: FillValues, Values: []float64{1}}, nil
	}
	if name, ok := strings.CutPrefix(text, "@"); ok {
		return Fill{Kind: FillFile, File: name}, nil
	}
	if low, high, ok := strings.Cut(text, ".."); ok {
		a, errA := strconv.Atoi(low)
		b, errB := strconv.Atoi(high)
		if errA != nil || errB != nil || a > b || a < -1<<53 || b > 1<<53 {
			return Fill{}, fmt.Errorf("%q is not a range: write LOW..HIGH with integers of at most 2⁵³ and LOW ≤ HIGH",
				text)
		}
		err := checkValue(float64(a), in.DType)
		if err == nil {
			err = checkValue(float64(b), in.DType)
		}
		return Fill{Kind: FillIntegers, Low: a, High: b}, err
	}
	f := Fill{Kind: FillValues}
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return f, fmt.Errorf("%q is not a fill: write normal, uniform, iota, zeros, ones, LOW..HIGH, @FILE or numbers",
				part)
		}
		if err := checkValue(v, in.DType); err != nil {
			return f, err
		}
		f.Values = append(f.Values, v)
	}
	if n := in.size(); len(f.Values) > 1 && len(f.Values) != n {
		return f, fmt.Errorf("%d values for %d elements: give one for all, or one for each", len(f.Values), n)
	}
	return f, nil
}

// checkValue returns an error if an integer dtype cannot hold v. Conversion would wrap it around.
func checkValue(v float64, d sanitizer.DType) error {
	bits := 8 * d.Size()
	low, high := 0.0, math.Ldexp(1, bits)-1
	if from, to, ok := normalized(d); ok {
		if v < from || v > to || math.IsNaN(v) {
			return fmt.Errorf("%v does not fit %v: write a number from %v to %v", v, d, from, to)
		}
		return nil
	}
	switch d {
	case sanitizer.Float16, sanitizer.Float32, sanitizer.Float64, sanitizer.BFloat16, sanitizer.Complex64:
		return nil
	case sanitizer.Bool:
		high = 1
	case sanitizer.Int8, sanitizer.Int16, sanitizer.Int32, sanitizer.Int64:
		low, high = -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)-1
	}
	// float64 holds every integer only up to 2⁵³.
	low, high = max(low, -1<<53), min(high, 1<<53)
	if v != math.Trunc(v) || v < low || v > high {
		return fmt.Errorf("%v does not fit %v: write an integer from %v to %v", v, d, low, high)
	}
	return nil
}

// size returns the number of elements.
func (in Input) size() int { return sanitizer.Array{Shape: in.Shape}.Size() }

// Array returns the input with its elements. Random elements depend on the seed and the name of the input. Elements of a
// file must have been read with [Spec.ReadFiles]; otherwise they are zeros.
func (in Input) Array(seed uint64) sanitizer.Array {
	if in.Fill.Kind == FillFile && in.Fill.data != nil {
		return sanitizer.Array{DType: in.DType, Shape: in.Shape, Data: in.Fill.data}
	}
	h := fnv.New64a()
	h.Write([]byte(in.Name))
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	a := sanitizer.Array{DType: in.DType, Shape: in.Shape, Data: make([]byte, 0, in.size()*in.DType.Size())}
	for i := range in.size() {
		a.Data = in.DType.Append(a.Data, in.Fill.at(i, r))
	}
	return a
}

// at returns element i.
func (f Fill) at(i int, r *rand.Rand) float64 {
	switch f.Kind {
	case FillUniform:
		return r.Float64()
	case FillIntegers:
		return float64(f.Low + r.IntN(f.High-f.Low+1))
	case FillIota:
		return float64(i)
	case FillFile:
		return 0
	case FillValues:
		if len(f.Values) == 0 {
			return 0
		}
		return f.Values[min(i, len(f.Values)-1)]
	}
	return r.NormFloat64()
}
