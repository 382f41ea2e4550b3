package fuzz

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// maxSize is the number of elements above which an array is neither evaluated nor kept.
const maxSize = 1 << 16

// shape draws a shape, mostly from the sequence's few sizes, so that operands often fit each other.
func (s *sequence) shape() []int {
	shape := make([]int, s.pick(1, 2, 2, 2, 3, 3, 4, 4, 5, 0))
	if s.chance(2) {
		shape = make([]int, 6+s.IntN(4))
	}
	n := 1
	for i := range shape {
		shape[i] = s.size()
		if n*max(shape[i], 1) > 4096 {
			shape[i] = 1
		}
		n *= max(shape[i], 1)
	}
	return shape
}

// size draws the size of an axis.
func (s *sequence) size() int {
	if s.chance(8) {
		return s.pick(1, 1, 0, 2, 3, 4, 17)
	}
	return s.sizes[s.IntN(len(s.sizes))]
}

func (s *sequence) dtype() mlxc.DType {
	if s.chance(70) {
		return s.mainDType
	}
	all := mlxc.DTypes()
	return all[s.IntN(len(all))]
}

// array makes an array of random elements and layout, evaluated or not.
func (s *sequence) array(d mlxc.DType, shape []int) *mlxc.Array {
	text := fmt.Sprintf("%v%v", d, shape)
	a := s.layout(d, shape, &text, 0)
	name := s.add(a, text)
	if s.chance(50) {
		s.write("Eval(%s)", name)
		if err := mlxc.Eval(a); err != nil {
			s.fail("the elements of a new array: %v", err)
		}
	}
	return a
}

// layout returns a random array with a random layout in memory. It appends a description of the layout to text.
func (s *sequence) layout(d mlxc.DType, shape []int, text *string, depth int) *mlxc.Array {
	if len(shape) == 0 || depth == 2 || s.chance(40) {
		return s.elements(d, shape, text)
	}
	axis := s.IntN(len(shape))
	at := slices.Repeat([]mlxc.Index{mlxc.All}, len(shape))
	inner := slices.Clone(shape)
	of := func(name string, f func(a *mlxc.Array) *mlxc.Array) *mlxc.Array {
		a := s.layout(d, inner, text, depth+1)
		*text += " " + name
		return f(a)
	}
	index := func(a *mlxc.Array) *mlxc.Array { return a.Index(at...) }
	switch s.IntN(9) {
	case 0:
		slices.Reverse(inner)
		return of("transposed", func(a *mlxc.Array) *mlxc.Array { return a.Transpose() })
	case 1:
		j := s.IntN(len(shape))
		inner[axis], inner[j] = inner[j], inner[axis]
		return of(fmt.Sprintf("swapped(%d,%d)", axis, j),
			func(a *mlxc.Array) *mlxc.Array { return a.SwapAxes(axis, j) })
	case 2:
		inner[axis] *= 2
		at[axis] = mlxc.All.Step(2)
		return of(fmt.Sprintf("step2(%d)", axis), index)
	case 3:
		at[axis] = mlxc.All.Step(-1)
		return of(fmt.Sprintf("reversed(%d)", axis), index)
	case 4:
		inner[axis] += 2
		at[axis] = mlxc.Range(1, shape[axis]+1)
		return of(fmt.Sprintf("middle(%d)", axis), index)
	case 5:
		for i := range inner {
			if s.chance(50) {
				inner[i] = 1
			}
		}
		return of(fmt.Sprintf("broadcast from %v", inner),
			func(a *mlxc.Array) *mlxc.Array { return a.BroadcastTo(shape...) })
	case 6:
		inner = append(inner, 3)
		at = []mlxc.Index{mlxc.Rest, mlxc.At(1)}
		return of("of the last axis", index)
	case 7:
		return of("computed", func(a *mlxc.Array) *mlxc.Array { return a.Add(mlxc.ZerosLike(a)) })
	default:
		return of("contiguous", (*mlxc.Array).Contiguous)
	}
}

// elements returns an array of random elements in row-major order. Most elements are small, so many operations are
// exact.
func (s *sequence) elements(d mlxc.DType, shape []int, text *string) *mlxc.Array {
	n := 1
	for _, size := range shape {
		n *= size
	}
	v := make([]float32, n)
	kind := s.IntN(12)
	if s.tame {
		kind %= 4
	}
	inf := float32(math.Inf(1))
	special := []float32{
		0, 1, -1, inf, -inf, float32(math.NaN()), math.MaxFloat32, math.SmallestNonzeroFloat32, 1e-6,
		2147483647, -2147483648, 255, 65504, 1e10,
	}
	for i := range v {
		switch kind {
		case 0:
			v[i] = 1
		case 1:
			v[i] = float32(s.IntN(9))/2 + 0.5
		case 2, 3, 4, 5, 6:
			v[i] = float32(s.IntN(9) - 4)
		case 7:
			v[i] = 0
		case 8, 9:
			v[i] = float32(s.NormFloat64())
		case 10:
			v[i] = special[s.IntN(len(special))]
		default:
			v[i] = float32(i % 7)
		}
	}
	*text += fmt.Sprintf(" of kind %d", kind)
	a := fromSlice(v, shape)
	if d == mlxc.Float32 {
		return a
	}
	return a.AsType(d)
}

// ids returns an array of indices for an axis of the given size. A few are out of range.
func (s *sequence) ids(size int) *mlxc.Array {
	shape := s.shape()
	if len(shape) > 2 {
		shape = shape[:2]
	}
	n := 1
	for _, k := range shape {
		n *= k
	}
	v := make([]int32, n)
	wild := s.chance(10)
	for i := range v {
		if size > 0 {
			v[i] = int32(s.IntN(2*size) - size)
		}
		if wild && s.chance(30) {
			v[i] = int32(s.pick(size, -size-1, 1000, -1000, math.MaxInt32, math.MinInt32))
		}
	}
	d := mlxc.Int32
	a := fromSlice(v, shape)
	if s.chance(30) {
		d = []mlxc.DType{mlxc.Int8, mlxc.Int16, mlxc.Int64, mlxc.Uint8, mlxc.Uint32, mlxc.Uint64}[s.IntN(6)]
		if d.String()[0] == 'u' {
			a = a.Abs()
		}
		a = a.AsType(d)
	}
	s.add(a, fmt.Sprintf("%v%v ids %v", d, shape, v[:min(len(v), 16)]))
	return a
}

// access holds functions that read and copy arrays of one dtype.
type access struct {
	values func(a *mlxc.Array) ([]complex128, error)
	copied func(a *mlxc.Array) (*mlxc.Array, error)
}

var accesses = map[mlxc.DType]access{
	mlxc.Bool: accessOf(func(v bool) complex128 {
		if v {
			return 1
		}
		return 0
	}),
	mlxc.Uint8: accessOf(real[uint8]), mlxc.Uint16: accessOf(real[uint16]), mlxc.Uint32: accessOf(real[uint32]),
	mlxc.Uint64: accessOf(real[uint64]), mlxc.Int8: accessOf(real[int8]), mlxc.Int16: accessOf(real[int16]),
	mlxc.Int32: accessOf(real[int32]), mlxc.Int64: accessOf(real[int64]),
	mlxc.Float32: accessOf(real[float32]), mlxc.Float64: accessOf(real[float64]),
	mlxc.Float16:   accessOf(func(v float16.Float16) complex128 { return real(v.Float32()) }),
	mlxc.BFloat16:  accessOf(func(v bfloat16.BFloat16) complex128 { return real(v.Float32()) }),
	mlxc.Complex64: accessOf(func(v complex64) complex128 { return complex128(v) }),
}

func real[T uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float32 | float64](v T) complex128 {
	return complex(float64(v), 0)
}

func accessOf[T mlxc.Element](convert func(T) complex128) access {
	return access{
		values: func(a *mlxc.Array) ([]complex128, error) {
			v, err := mlxc.ToSlice[T](a)
			out := make([]complex128, len(v))
			for i, x := range v {
				out[i] = convert(x)
			}
			return out, err
		},
		copied: func(a *mlxc.Array) (*mlxc.Array, error) {
			v, err := mlxc.ToSlice[T](a)
			if err != nil {
				return nil, err
			}
			return fromSlice(v, a.Shape()), nil
		},
	}
}

// fromSlice makes an array of the shape, which is empty for a scalar.
func fromSlice[T mlxc.Element](v []T, shape []int) *mlxc.Array {
	if len(shape) == 0 {
		return mlxc.Scalar(v[0])
	}
	return mlxc.FromSlice(v, shape...)
}

// values evaluates and reads an array.
func values(a *mlxc.Array) ([]complex128, error) {
	if err := a.Err(); err != nil {
		return nil, err
	}
	return accesses[a.DType()].values(a)
}

// contiguous copies an array through Go's memory, so that the copy's elements lie in row-major
// order.
func contiguous(a *mlxc.Array) (*mlxc.Array, error) {
	if err := a.Err(); err != nil {
		return nil, err
	}
	return accesses[a.DType()].copied(a)
}

// epsilon is the allowed difference of sums in different orders, relative to the largest element. MLX computes
// exponentials of float64 with the accuracy of float32.
var epsilon = map[mlxc.DType]float64{
	mlxc.Float16: 2e-2, mlxc.BFloat16: 1e-1, mlxc.Float32: 1e-4, mlxc.Complex64: 1e-4, mlxc.Float64: 1e-4,
}

// difference describes the first element that differs between two results, or returns "". It accepts every result if an
// element of want is huge, infinite or NaN: after an overflow, elements depend on the order of a sum.
func difference(want, got *mlxc.Array) (string, error) {
	if !slices.Equal(want.Shape(), got.Shape()) || want.DType() != got.DType() {
		return fmt.Sprintf("%v%v, not %v%v", got.DType(), got.Shape(), want.DType(), want.Shape()), nil
	}
	w, err := values(want)
	if err != nil {
		return "", err
	}
	g, err := values(got)
	if err != nil {
		return "", err
	}
	largest := 1.0
	for _, v := range w {
		if m := cmplx.Abs(v); wild(v) {
			return "", nil
		} else if m > largest {
			largest = m
		}
	}
	for i := range w {
		if d := cmplx.Abs(w[i] - g[i]); !(d <= epsilon[want.DType()]*largest) {
			return fmt.Sprintf("element %d is %v, not %v", i, g[i], w[i]), nil
		}
	}
	return "", nil
}

func wild(v complex128) bool { return cmplx.IsNaN(v) || cmplx.IsInf(v) || cmplx.Abs(v) > 1e15 }
