package mlxc

import (
	"fmt"
	"math"
	"reflect"

	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// Operations of an array and a Go scalar. The package documentation has the dtype rules, under Scalars.

// AddScalar returns a + s.
func (a *Array) AddScalar(s any) *Array { return a.withScalar("AddScalar", s, (*Array).Add) }

// SubScalar returns a − s.
func (a *Array) SubScalar(s any) *Array { return a.withScalar("SubScalar", s, (*Array).Sub) }

// RSubScalar returns s − a.
func (a *Array) RSubScalar(s any) *Array {
	return a.withScalar("RSubScalar", s, reversed((*Array).Sub))
}

// MulScalar returns a · s.
func (a *Array) MulScalar(s any) *Array { return a.withScalar("MulScalar", s, (*Array).Mul) }

// DivScalar returns a / s. Integers and booleans are divided as float32.
func (a *Array) DivScalar(s any) *Array { return a.withScalar("DivScalar", s, (*Array).Div) }

// RDivScalar returns s / a. Integers and booleans are divided as float32.
func (a *Array) RDivScalar(s any) *Array {
	return a.withScalar("RDivScalar", s, reversed((*Array).Div))
}

// FloorDivideScalar returns ⌊a / s⌋; see FloorDivide.
func (a *Array) FloorDivideScalar(s any) *Array {
	return a.withScalar("FloorDivideScalar", s, (*Array).FloorDivide)
}

// RemainderScalar returns a − s·⌊a / s⌋; see Remainder.
func (a *Array) RemainderScalar(s any) *Array {
	return a.withScalar("RemainderScalar", s, (*Array).Remainder)
}

// PowScalar returns a raised to s; see Pow.
func (a *Array) PowScalar(s any) *Array {
	if v := reflect.ValueOf(s); !v.IsValid() || !v.IsZero() { // the guard of Pow is for exponents of 0
		return a.withScalar("PowScalar", s, mlxPower)
	}
	return a.withScalar("PowScalar", s, (*Array).Pow)
}

// RPowScalar returns s raised to a.
func (a *Array) RPowScalar(s any) *Array {
	return a.withScalar("RPowScalar", s, reversed((*Array).Pow))
}

// MaximumScalar returns the larger of a and s; NaN if either is NaN.
func (a *Array) MaximumScalar(s any) *Array {
	return a.withScalar("MaximumScalar", s, (*Array).Maximum)
}

// MinimumScalar returns the smaller of a and s; NaN if either is NaN.
func (a *Array) MinimumScalar(s any) *Array {
	return a.withScalar("MinimumScalar", s, (*Array).Minimum)
}

// EqualScalar returns a = s.
func (a *Array) EqualScalar(s any) *Array { return a.withScalar("EqualScalar", s, (*Array).Equal) }

// NotEqualScalar returns a ≠ s.
func (a *Array) NotEqualScalar(s any) *Array {
	return a.withScalar("NotEqualScalar", s, (*Array).NotEqual)
}

// LessScalar returns a < s.
func (a *Array) LessScalar(s any) *Array { return a.withScalar("LessScalar", s, (*Array).Less) }

// LessEqualScalar returns a ≤ s.
func (a *Array) LessEqualScalar(s any) *Array {
	return a.withScalar("LessEqualScalar", s, (*Array).LessEqual)
}

// GreaterScalar returns a > s.
func (a *Array) GreaterScalar(s any) *Array {
	return a.withScalar("GreaterScalar", s, (*Array).Greater)
}

// GreaterEqualScalar returns a ≥ s.
func (a *Array) GreaterEqualScalar(s any) *Array {
	return a.withScalar("GreaterEqualScalar", s, (*Array).GreaterEqual)
}

// Clip limits the elements to low … high, as MaximumScalar and then MinimumScalar do. nil is no limit, nor is −∞ as low
// or ∞ as high: Clip(0, nil) is ReLU. NaN stays NaN.
func (a *Array) Clip(low, high any) *Array {
	limited := a
	if !isInfinite(low, -1) {
		limited = a.withScalar("Clip", low, (*Array).Maximum)
		defer limited.Free()
	}
	if isInfinite(high, 1) {
		return limited.AsType(limited.DType()) // always returns a new array
	}
	return limited.withScalar("Clip", high, (*Array).Minimum)
}

// isInfinite reports whether s is nil or an infinity of the given sign.
func isInfinite(s any, sign int) bool {
	v := reflect.ValueOf(s)
	return !v.IsValid() || v.CanFloat() && math.IsInf(v.Float(), sign)
}

func reversed(f func(a, b *Array) *Array) func(a, b *Array) *Array {
	return func(a, b *Array) *Array { return f(b, a) }
}

// withScalar applies f to a and s, converted by the rules for scalars.
func (a *Array) withScalar(op string, s any, f func(a, b *Array) *Array) *Array {
	if a.Err() != nil {
		return f(a, a) // returns a's error
	}
	b, err := weakScalar(s, a.DType())
	if err != nil {
		return invalid(opError(op, err, a))
	}
	defer b.Free()
	return f(a, b)
}

// weakScalar returns s as a scalar array for an operation with an array of dtype d, by the rules for scalars.
func weakScalar(s any, d DType) (*Array, error) {
	switch s := s.(type) { // the Kind of both is uint16
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
	if least, greatest := d.integerRange(); n < int64(least) || n > int64(greatest) {
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
	least, greatest := d.integerRange()
	if d == Uint64 {
		return fmt.Errorf("the scalar is %d: %v holds 0 … %d", n, d, uint64(math.MaxUint64))
	}
	return fmt.Errorf("the scalar is %d: %v holds %d … %d", n, d, least, greatest)
}
