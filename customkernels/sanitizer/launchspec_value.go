package sanitizer

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Fill says what an input holds. The zero Fill is normal.
type Fill struct {
	Kind FillKind
	// Low and High are the ends of FillIntegers, both included.
	Low, High int
	// Values are those of FillValues: one for all elements or one for each.
	Values []float64
}

// FillKind is a way to fill an input.
type FillKind uint8

// The ways to fill an input.
const (
	FillNormal   FillKind = iota // standard normal
	FillUniform                  // from [0, 1)
	FillIntegers                 // random integers
	FillIota                     // 0, 1, 2, …
	FillValues                   // given numbers
)

// maxElements bounds an array of a description, which may come from anywhere.
const maxElements = 1 << 28

var nameSyntax = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func isName(s string) bool { return nameSyntax.MatchString(s) }

// set reads the value of a setting.
func (s *LaunchSpec) set(name, value string) (err error) {
	switch name {
	case "grid":
		s.Launch.Grid, err = parseAxes(value)
		return err
	case "threadgroup":
		s.Launch.Threadgroup, err = parseAxes(value)
		return err
	case "init":
		v, err := strconv.ParseFloat(value, 32)
		if err != nil {
			return errors.New("write init=NUMBER")
		}
		init := float32(v)
		s.Launch.InitValue = &init
		return nil
	}
	if size, ok := strings.CutPrefix(value, "threadgroup:"); ok {
		elements, err := strconv.Atoi(size)
		if err != nil || elements < 1 {
			return fmt.Errorf("%q is no number of elements: write NAME=threadgroup:ELEMENTS", size)
		}
		if s.ThreadgroupSizes == nil {
			s.ThreadgroupSizes = map[string]int{}
		}
		s.ThreadgroupSizes[name] = elements
		return nil
	}
	if array, ok := strings.CutPrefix(value, "inout:"); ok {
		in, err := parseInput(name, array)
		s.InOut = append(s.InOut, in)
		s.OutputNames = append(s.OutputNames, name)
		s.Launch.Outputs = append(s.Launch.Outputs, Output{Shape: in.Shape, DType: in.DType})
		return err
	}
	array, undefined := strings.CutPrefix(value, "undefined:")
	if undefined {
		s.Launch.Undefined = append(s.Launch.Undefined, name)
	}
	if out, ok := strings.CutPrefix(value, "out:"); ok || undefined {
		if ok {
			array = out
		}
		a, fill, err := parseArray(array)
		if err == nil && fill != "" {
			err = errors.New("an output has no values: write NAME=out:DTYPE[SHAPE], and init=NUMBER for what all outputs hold")
		}
		s.OutputNames = append(s.OutputNames, name)
		s.Launch.Outputs = append(s.Launch.Outputs, Output{Shape: a.Shape, DType: a.DType})
		return err
	}
	if arg, ok := parseTemplateArg(value); ok {
		s.Launch.Template = append(s.Launch.Template, TemplateArg{Name: name, Value: arg})
		return nil
	}
	in, err := parseInput(name, value)
	s.Inputs = append(s.Inputs, in)
	return err
}

// parseInput reads DTYPE[SHAPE]:FILL.
func parseInput(name, value string) (InputSpec, error) {
	in, fill, err := parseArray(value)
	if err == nil {
		in.Name = name
		in.Fill, err = parseFill(fill, in)
	}
	return in, err
}

var fractionSyntax = regexp.MustCompile(`^[-+]?[0-9]*\.[0-9]+$`)

// parseTemplateArg reads a dtype, a number or a truth value.
func parseTemplateArg(value string) (any, bool) {
	if d, ok := parseDType(value); ok {
		return d, true
	}
	if n, err := strconv.Atoi(value); err == nil {
		return n, true
	}
	if value == "true" || value == "false" {
		return value == "true", true
	}
	if fractionSyntax.MatchString(value) {
		f, err := strconv.ParseFloat(value, 32)
		return float32(f), err == nil
	}
	return nil, false
}

func parseDType(name string) (DType, bool) {
	all := DTypes()
	i := slices.IndexFunc(all, func(d DType) bool { return d.String() == name })
	if i < 0 {
		return Invalid, false
	}
	return all[i], true
}

func parseAxes(value string) (axes [3]int, err error) {
	parts := strings.Split(value, ",")
	if len(parts) > 3 {
		return axes, errors.New("write at most three numbers")
	}
	for i, p := range parts {
		if axes[i], err = strconv.Atoi(p); err != nil || axes[i] < 1 || axes[i] > math.MaxInt32 {
			return axes, fmt.Errorf("%q is no number of threads: write one to three numbers from 1 on, such as 64 or 32,8", p)
		}
	}
	return axes, nil
}

var arraySyntax = regexp.MustCompile(`^([a-z0-9]+)(\[([^\]]*)\])?(:(.*))?$`)

// parseArray reads DTYPE[SHAPE]:FILL, of which the fill is returned as it stands.
func parseArray(value string) (a InputSpec, fill string, err error) {
	m := arraySyntax.FindStringSubmatch(value)
	if m == nil {
		return a, "", errors.New("write DTYPE[SHAPE], such as float32[4,16]")
	}
	var ok bool
	if a.DType, ok = parseDType(m[1]); !ok {
		return a, "", fmt.Errorf("%q is no dtype: write one of %v, true, false or an integer", m[1], DTypes())
	}
	if m[4] != "" && m[5] == "" {
		return a, "", errors.New("nothing follows the colon: write a fill there, such as zeros, or remove it")
	}
	if m[2] == "" {
		return a, m[5], nil
	}
	size := 1
	for p := range strings.SplitSeq(m[3], ",") {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return a, "", fmt.Errorf("%q is no length of an axis: write DTYPE[SHAPE], such as float32[4,16]", p)
		}
		if n > 0 && size > maxElements/n {
			return a, "", fmt.Errorf("the array has more than %d elements: make it smaller", maxElements)
		}
		size *= n
		a.Shape = append(a.Shape, n)
	}
	return a, m[5], nil
}

// parseFill reads a fill for an input.
func parseFill(text string, in InputSpec) (Fill, error) {
	real := in.DType.real()
	switch text {
	case "":
		switch {
		case real:
			return Fill{}, nil
		case in.DType == Bool:
			return Fill{Kind: FillIntegers, Low: 0, High: 1}, nil
		}
		return Fill{Kind: FillIntegers, Low: 0, High: 9}, nil
	case "normal", "uniform":
		if !real {
			return Fill{}, fmt.Errorf("%s is for floating-point dtypes: write LOW..HIGH for integers", text)
		}
		if text == "uniform" {
			return Fill{Kind: FillUniform}, nil
		}
		return Fill{}, nil
	case "iota":
		return Fill{Kind: FillIota}, nil
	case "zeros":
		return Fill{Kind: FillValues, Values: []float64{0}}, nil
	case "ones":
		return Fill{Kind: FillValues, Values: []float64{1}}, nil
	}
	if low, high, ok := strings.Cut(text, ".."); ok {
		a, errA := strconv.Atoi(low)
		b, errB := strconv.Atoi(high)
		if errA != nil || errB != nil || a > b || a < -1<<53 || b > 1<<53 {
			return Fill{}, fmt.Errorf("%q is no range: write LOW..HIGH with two integers", text)
		}
		err := fits(float64(a), in.DType)
		if err == nil {
			err = fits(float64(b), in.DType)
		}
		return Fill{Kind: FillIntegers, Low: a, High: b}, err
	}
	f := Fill{Kind: FillValues}
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return f, fmt.Errorf("%q is no fill: write normal, uniform, iota, zeros, ones, LOW..HIGH or numbers", part)
		}
		if err := fits(v, in.DType); err != nil {
			return f, err
		}
		f.Values = append(f.Values, v)
	}
	if n := in.size(); len(f.Values) > 1 && len(f.Values) != n {
		return f, fmt.Errorf("%d values for %d elements: give one for all, or one for each", len(f.Values), n)
	}
	return f, nil
}

// fits refuses a number that an integer dtype cannot hold: MLX would wrap it round.
func fits(v float64, d DType) error {
	bits := 8 * d.Size()
	low, high := 0.0, math.Ldexp(1, bits)-1
	switch d {
	case Float16, Float32, Float64, BFloat16, Complex64:
		return nil
	case Bool:
		high = 1
	case Int8, Int16, Int32, Int64:
		low, high = -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)-1
	}
	// Beyond 2⁵³ a float64 cannot tell neighbours apart.
	low, high = max(low, -1<<53), min(high, 1<<53)
	if v != math.Trunc(v) || v < low || v > high {
		return fmt.Errorf("%v is no value of %v: write an integer from %v to %v", v, d, low, high)
	}
	return nil
}

// size is the number of elements.
func (in InputSpec) size() int {
	n := 1
	for _, l := range in.Shape {
		n *= l
	}
	return n
}

// Array makes the input. Random values come from the seed and the input's name.
func (in InputSpec) Array(seed uint64) Array {
	h := fnv.New64a()
	h.Write([]byte(in.Name))
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	a := Array{DType: in.DType, Shape: in.Shape}
	a.Data = make([]byte, 0, in.size()*in.DType.Size())
	for i := range in.size() {
		a.Data = appendNumber(a.Data, in.DType, in.Fill.at(i, r))
	}
	return a
}

// at is element i.
func (f Fill) at(i int, r *rand.Rand) float64 {
	switch f.Kind {
	case FillUniform:
		return r.Float64()
	case FillIntegers:
		return float64(f.Low + r.IntN(f.High-f.Low+1))
	case FillIota:
		return float64(i)
	case FillValues:
		if len(f.Values) == 0 {
			return 0
		}
		return f.Values[min(i, len(f.Values)-1)]
	}
	return r.NormFloat64()
}
