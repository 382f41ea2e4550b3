package mlxc

import (
	"fmt"
	"math"
	"reflect"

	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// Operations of an array and a Go number. A scalar s is a bool or of any Go type of integers,
// floats or complex numbers, a float16.Float16 or a bfloat16.BFloat16. As in Python its kind, and
// not its size, decides the dtype in which it takes part:
//
//	s        | a is bool | a is an integer | a is a float | a is complex64
//	bool     | bool      | a's dtype       | a's dtype    | complex64
//	integer  | int32     | a's dtype       | a's dtype    | complex64
//	float    | float32   | float32         | a's dtype    | complex64
//	complex  | complex64 | complex64       | complex64    | complex64
//
// So 2 keeps integers exact, and 2.0 converts them: an untyped Go constant is an integer if it is
// written as one. Comparisons give booleans; divisions of integers give float32. An integer s that
// the dtype of the table cannot hold is an error, also for the int64 and uint64 arrays that
// Python wraps; so is an s of another type.

// AddScalar returns a + s.
func (a *Array) AddScalar(s any) *Array { return a.withScalar("AddScalar", s, (*Array).Add) }

// SubScalar returns a − s.
func (a *Array) SubScalar(s any) *Array { return a.withScalar("SubScalar", s, (*Array).Sub) }

// RSubScalar returns s − a, with the scalar on the left.
func (a *Array) RSubScalar(s any) *Array {
	return a.withScalar("RSubScalar", s, reversed((*Array).Sub))
}

// MulScalar returns a · s.
func (a *Array) MulScalar(s any) *Array { return a.withScalar("MulScalar", s, (*Array).Mul) }

// DivScalar returns a / s; of integers and booleans as float32.
func (a *Array) DivScalar(s any) *Array { return a.withScalar("DivScalar", s, (*Array).Div) }

// RDivScalar returns s / a, with the scalar on the left; of integers and booleans as float32.
func (a *Array) RDivScalar(s any) *Array {
	return a.withScalar("RDivScalar", s, reversed((*Array).Div))
}

// FloorDivideScalar returns ⌊a / s⌋, as FloorDivide does.
func (a *Array) FloorDivideScalar(s any) *Array {
	return a.withScalar("FloorDivideScalar", s, (*Array).FloorDivide)
}

// RemainderScalar returns a − s·⌊a / s⌋, as Remainder does.
func (a *Array) RemainderScalar(s any) *Array {
	return a.withScalar("RemainderScalar", s, (*Array).Remainder)
}

// PowScalar returns a raised to s.
func (a *Array) PowScalar(s any) *Array { return a.withScalar("PowScalar", s, (*Array).Pow) }

// RPowScalar returns s raised to a.
func (a *Array) RPowScalar(s any) *Array {
	return a.withScalar("RPowScalar", s, reversed((*Array).Pow))
}

// MaximumScalar returns the larger of a and s; NaN if either is.
func (a *Array) MaximumScalar(s any) *Array {
	return a.withScalar("MaximumScalar", s, (*Array).Maximum)
}

// MinimumScalar returns the smaller of a and s; NaN if either is.
func (a *Array) MinimumScalar(s any) *Array {
	return a.withScalar("MinimumScalar", s, (*Array).Minimum)
}

// EqualScalar reports which elements equal s, as booleans.
func (a *Array) EqualScalar(s any) *Array { return a.withScalar("EqualScalar", s, (*Array).Equal) }

// NotEqualScalar reports which elements differ from s, as booleans.
func (a *Array) NotEqualScalar(s any) *Array {
	return a.withScalar("NotEqualScalar", s, (*Array).NotEqual)
}

// LessScalar reports which elements are below s, as booleans.
func (a *Array) LessScalar(s any) *Array { return a.withScalar("LessScalar", s, (*Array).Less) }

// LessEqualScalar reports which elements are at most s, as booleans.
func (a *Array) LessEqualScalar(s any) *Array {
	return a.withScalar("LessEqualScalar", s, (*Array).LessEqual)
}

// GreaterScalar reports which elements are above s, as booleans.
func (a *Array) GreaterScalar(s any) *Array {
	return a.withScalar("GreaterScalar", s, (*Array).Greater)
}

// GreaterEqualScalar reports which elements are at least s, as booleans.
func (a *Array) GreaterEqualScalar(s any) *Array {
	return a.withScalar("GreaterEqualScalar", s, (*Array).GreaterEqual)
}

// Clip returns the elements limited to low … high, as MaximumScalar and then MinimumScalar do. A
// limit that is nil, or an infinity on its own side, is none: Clip(0, nil) is the rectifier. NaN
// stays NaN.
func (a *Array) Clip(low, high any) *Array {
	limited := a
	if !isInfinite(low, -1) {
		limited = a.withScalar("Clip", low, (*Array).Maximum)
		defer limited.Free()
	}
	if isInfinite(high, 1) {
		return limited.AsType(limited.DType()) // an array of its own
	}
	return limited.withScalar("Clip", high, (*Array).Minimum)
}

// isInfinite reports whether s is nil or an infinity with the sign.
func isInfinite(s any, sign int) bool {
	v := reflect.ValueOf(s)
	return !v.IsValid() || v.CanFloat() && math.IsInf(v.Float(), sign)
}

func reversed(f func(a, b *Array) *Array) func(a, b *Array) *Array {
	return func(a, b *Array) *Array { return f(b, a) }
}

// withScalar applies f to a and s, which gets the dtype that the table above gives it.
func (a *Array) withScalar(op string, s any, f func(a, b *Array) *Array) *Array {
	if a.Err() != nil {
		return f(a, a) // which passes the error on
	}
	b, err := weakScalar(s, a.DType())
	if err != nil {
		return invalid(opError(op, err, a))
	}
	defer b.Free()
	return f(a, b)
}

// weakScalar makes a scalar for an operation with an array of dtype d.
func weakScalar(s any, d DType) (*Array, error) {
	switch s := s.(type) { // which reflect takes for integers
	case float16.Float16:
		return weakFloat(float64(s.Float32()), d), nil
	case bfloat16.BFloat16:
		return weakFloat(float64(s.Float32()), d), nil
	}
	v := reflect.ValueOf(s)
	switch {
	case v.Kind() == reflect.Bool:
		return scalarAs(v.Bool(), d), nil
	case v.CanInt():
		return weakInt(v.Int(), d)
	case v.CanUint() && v.Uint() <= math.MaxInt64:
		return weakInt(int64(v.Uint()), d)
	case v.CanUint() && d == Uint64:
		return Scalar(v.Uint()), nil
	case v.CanUint() && d.exact():
		return nil, errOverflow(v.Uint(), d)
	case v.CanUint():
		return weakFloat(float64(v.Uint()), d), nil
	case v.CanFloat():
		return weakFloat(v.Float(), d), nil
	case v.CanComplex():
		return Scalar(complex64(v.Complex())), nil
	}
	return nil, fmt.Errorf("the scalar is a %T: it must be a bool or a number", s)
}

func weakInt(n int64, d DType) (*Array, error) {
	switch {
	case d == Bool:
		d = Int32
	case !d.exact():
		return weakFloat(float64(n), d), nil
	}
	if least, greatest := d.integers(); n < int64(least) || n > int64(greatest) {
		return nil, errOverflow(n, d)
	}
	return scalarAs(n, d), nil
}

func weakFloat(x float64, d DType) *Array {
	switch d {
	case Float64:
		return Scalar(x)
	case Float16, BFloat16:
		return scalarAs(float32(x), d)
	}
	return Scalar(float32(x))
}

func scalarAs[T Element](x T, d DType) *Array {
	s := Scalar(x)
	if s.DType() == d {
		return s
	}
	defer s.Free()
	return s.AsType(d)
}

func errOverflow[T int64 | uint64](n T, d DType) error {
	least, greatest := d.integers()
	if d == Uint64 {
		return fmt.Errorf("the scalar is %d: %v holds 0 … %d", n, d, uint64(math.MaxUint64))
	}
	return fmt.Errorf("the scalar is %d: %v holds %d … %d", n, d, least, greatest)
}
