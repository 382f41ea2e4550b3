// Package mlxtest holds helpers of the tests of several packages: inputs, elements and comparisons of MLX arrays.
package mlxtest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// FloatDTypes are the dtypes that most kernels support.
var FloatDTypes = []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16}

// Floats returns the elements of an array of any real dtype as float32, in row-major order.
func Floats(t testing.TB, a *mlxc.Array) []float32 {
	t.Helper()
	v, err := mlxc.ToSlice[float32](a.AsType(mlxc.Float32))
	require.NoError(t, err)
	return v
}

// Values returns the elements of an array as float64, in row-major order. It is exact for uint32, int32 and
// floating-point dtypes up to float32.
func Values(t testing.TB, a *mlxc.Array) []float64 {
	t.Helper()
	switch a.DType() {
	case mlxc.Uint32:
		return values[uint32](t, a)
	case mlxc.Int32:
		return values[int32](t, a)
	}
	return values[float32](t, a.AsType(mlxc.Float32))
}

func values[T uint32 | int32 | float32](t testing.TB, a *mlxc.Array) []float64 {
	t.Helper()
	v, err := mlxc.ToSlice[T](a)
	require.NoError(t, err)
	r := make([]float64, len(v))
	for i, x := range v {
		r[i] = float64(x)
	}
	return r
}

// Bytes returns the elements of an array in row-major order and the machine's byte order.
func Bytes(t testing.TB, a *mlxc.Array) []byte {
	t.Helper()
	data, err := mlxc.ToSlice[uint8](a.Reshape(a.Size()).View(mlxc.Uint8))
	require.NoError(t, err)
	return data
}

// FromBytes makes an array of elements in row-major order and the machine's byte order. A nonzero byte is true.
func FromBytes(data []byte, d mlxc.DType, shape []int) *mlxc.Array {
	bytes := mlxc.FromSlice(data)
	if d == mlxc.Bool {
		return bytes.AsType(mlxc.Bool).Reshape(shape...)
	}
	return bytes.View(d).Reshape(shape...)
}

// Size returns the number of elements of a shape.
func Size(shape []int) int {
	n := 1
	for _, length := range shape {
		n *= length
	}
	return n
}

// A Source draws reproducible inputs. Each method returns an array of a dtype, and its elements as rounded to the
// dtype, in row-major order. An error fails the test T. One goroutine at a time may use a Source.
type Source struct {
	T      testing.TB
	Random *rand.Rand
}

// NewSource returns a source with the given seeds.
func NewSource(t testing.TB, seed1, seed2 uint64) *Source {
	return &Source{t, rand.New(rand.NewPCG(seed1, seed2))}
}

// Array converts elements to an array.
func (s *Source) Array(d mlxc.DType, elements []float32, shape ...int) (*mlxc.Array, []float64) {
	s.T.Helper()
	a := mlxc.FromSlice(elements, shape...).AsType(d)
	require.NoError(s.T, mlxc.Eval(a))
	return a, Values(s.T, a)
}

// Normal draws from the standard normal distribution.
func (s *Source) Normal(d mlxc.DType, shape ...int) (*mlxc.Array, []float64) {
	s.T.Helper()
	return s.draw(d, shape, s.Random.NormFloat64)
}

// Uniform draws from [low, high).
func (s *Source) Uniform(d mlxc.DType, low, high float64, shape ...int) (*mlxc.Array, []float64) {
	s.T.Helper()
	return s.draw(d, shape, func() float64 { return low + (high-low)*s.Random.Float64() })
}

// Integers draws integers from [0, n). Every dtype holds them exactly if n is at most 256.
func (s *Source) Integers(d mlxc.DType, n int, shape ...int) (*mlxc.Array, []float64) {
	s.T.Helper()
	return s.draw(d, shape, func() float64 { return float64(s.Random.IntN(n)) })
}

func (s *Source) draw(d mlxc.DType, shape []int, next func() float64) (*mlxc.Array, []float64) {
	s.T.Helper()
	v := make([]float32, Size(shape))
	for i := range v {
		v[i] = float32(next())
	}
	return s.Array(d, v, shape...)
}

// Roundoff returns the unit roundoff of a floating-point dtype, and 0 for other dtypes.
func Roundoff(d mlxc.DType) float64 {
	switch d {
	case mlxc.Float32:
		return 0x1p-24
	case mlxc.Float16:
		return 0x1p-11
	case mlxc.BFloat16:
		return 0x1p-8
	}
	return 0
}

// A Bound is the largest allowed error of a result: Absolute + Relative·|reference|.
type Bound struct{ Absolute, Relative float64 }

// Rounded returns the bound of a result after `steps` operations in float32 on intermediate values up to `size`.
// Each step errs by at most 2⁻²⁴ of its result, and the result is rounded once to the dtype. The inputs are exact:
// references start from the rounded ones. 2⁻²⁵, half of the least positive float16, is added for underflow.
func Rounded(d mlxc.DType, steps int, size float64) Bound {
	return Bound{float64(steps)*0x1p-24*size + 0x1p-25, 1.01 * Roundoff(d)}
}

// ProductBound returns the bound of sums of k products of standard normal numbers. It assumes that intermediate values
// stay below five standard deviations.
func ProductBound(d mlxc.DType, k int) Bound { return Rounded(d, 2*k, 5*math.Sqrt(float64(k))) }

// RequireNear requires every element of got within the bound of want. NaN is never within a bound.
func RequireNear(t testing.TB, want []float64, got *mlxc.Array, b Bound) {
	t.Helper()
	v := Values(t, got)
	require.Len(t, v, len(want))
	for i := range want {
		if d := math.Abs(v[i] - want[i]); !(d <= b.Absolute+b.Relative*math.Abs(want[i])) && v[i] != want[i] {
			require.FailNow(t, "wrong value", "element %d of %v is %v, want %v within %+v", i, got.Shape(), v[i], want[i], b)
		}
	}
}

// InSample reports whether case i of a list of similar cases runs: all in a full run, and one in twelve otherwise.
func InSample(i int) bool { return long.Full() || i%12 == 0 }

// Scaled returns f with its one output, and thereby its gradients, multiplied by a factor.
func Scaled(f mlxc.Func, factor float64) mlxc.Func {
	return func(in []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{f(in)[0].MulScalar(factor)}
	}
}
