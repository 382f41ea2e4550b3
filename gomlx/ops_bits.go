package gomlx

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func (f *function) BitwiseAnd(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeBitwiseAnd, x, y, (*mlxc.Array).BitwiseAnd)
}

func (f *function) BitwiseOr(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeBitwiseOr, x, y, (*mlxc.Array).BitwiseOr)
}

func (f *function) BitwiseXor(x, y backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeBitwiseXor, x, y, (*mlxc.Array).BitwiseXor)
}

func (f *function) BitwiseNot(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeBitwiseNot, x, (*mlxc.Array).BitwiseInvert)
}

func (f *function) ShiftLeft(x, n backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeShiftLeft, x, n, (*mlxc.Array).LeftShift)
}

func (f *function) ShiftRightArithmetic(x, n backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeShiftRightArithmetic, x, n, func(x, n *mlxc.Array) *mlxc.Array {
		signed := signedDType(x.DType())
		return x.View(signed).RightShift(n.View(signed)).View(x.DType())
	})
}

func (f *function) ShiftRightLogical(x, n backends.Value) (backends.Value, error) {
	return f.binary(backends.OpTypeShiftRightLogical, x, n, func(x, n *mlxc.Array) *mlxc.Array {
		unsigned := unsignedDType(x.DType())
		return x.View(unsigned).RightShift(n.View(unsigned)).View(x.DType())
	})
}

// BitCount returns the number of ones of each element.
func (f *function) BitCount(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeBitCount, x, func(x *mlxc.Array) *mlxc.Array {
		return bitCount(x.View(unsignedDType(x.DType())))
	})
}

// Clz returns the number of zeros above the highest one of each element.
func (f *function) Clz(x backends.Value) (backends.Value, error) {
	return f.unary(backends.OpTypeClz, x, func(x *mlxc.Array) *mlxc.Array {
		bits := 8 * x.DType().Size()
		x = x.View(unsignedDType(x.DType()))
		for n := 1; n < bits; n *= 2 { // ones everywhere below the highest one
			x = x.BitwiseOr(x.RightShift(scalarLike(x, n)))
		}
		return scalarLike(x, bits).Sub(bitCount(x))
	})
}

// bitCount adds ever wider groups of bits of unsigned integers.
func bitCount(x *mlxc.Array) *mlxc.Array {
	bits := 8 * x.DType().Size()
	for n := 1; n < bits; n *= 2 {
		var mask uint64 // the lower n bits of each group of 2n bits
		for at := 0; at < bits; at += 2 * n {
			mask |= (1<<n - 1) << at
		}
		m := mlxc.Full(x.DType(), mlxc.Scalar(mask))
		x = x.BitwiseAnd(m).Add(x.RightShift(scalarLike(x, n)).BitwiseAnd(m))
	}
	return x
}

// scalarLike returns n as a scalar of x's dtype.
func scalarLike(x *mlxc.Array, n int) *mlxc.Array { return mlxc.Full(x.DType(), mlxc.Scalar(int64(n))) }

var signedOf = map[mlxc.DType]mlxc.DType{
	mlxc.Uint8: mlxc.Int8, mlxc.Uint16: mlxc.Int16, mlxc.Uint32: mlxc.Int32, mlxc.Uint64: mlxc.Int64,
}

func signedDType(d mlxc.DType) mlxc.DType {
	if s, ok := signedOf[d]; ok {
		return s
	}
	return d
}

func unsignedDType(d mlxc.DType) mlxc.DType {
	for u, s := range signedOf {
		if s == d {
			return u
		}
	}
	return d
}

// Bitcast reads the bytes of the elements as another dtype. A smaller dtype adds a last axis. A larger dtype takes the
// whole last axis, or divides it if the axis is longer than an element.
func (f *function) Bitcast(x backends.Value, target dtypes.DType) (backends.Value, error) {
	return f.add1(backends.OpTypeBitcast, []backends.Value{x},
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			from := in[0].DType
			out, err := bitcastShape(in[0], target)
			return out, func(in []*mlxc.Array) *mlxc.Array {
				a := in[0]
				if a.NDim() == 0 {
					a = a.Reshape(1)
				}
				if from.IsPacked() {
					a = pack(a, from.Bits())
				}
				if target.IsPacked() {
					return unpack(a.View(mlxc.Uint8), target).Reshape(out.Dimensions...)
				}
				return a.View(mlxDType(target)).Reshape(out.Dimensions...)
			}, err
		})
}

func bitcastShape(s shapes.Shape, target dtypes.DType) (shapes.Shape, error) {
	out := withDType(s.Clone(), target)
	from, to := s.DType.Bits(), target.Bits()
	switch {
	case !target.IsSupported():
		return out, fmt.Errorf("the dtype %v is invalid", target)
	case from > to:
		out.Dimensions = append(out.Dimensions, from/to)
	case from < to:
		last := s.Rank() - 1
		if last < 0 || s.Dimensions[last]%(to/from) != 0 {
			return out, fmt.Errorf("the last axis of %v must have a multiple of %d elements", s, to/from)
		}
		if out.Dimensions[last] /= to / from; out.Dimensions[last] == 1 {
			out.Dimensions = slices.Clip(out.Dimensions[:last])
		}
	}
	return out, nil
}

// pack joins elements of fewer than 8 bits, which have a byte each, into bytes along the last axis.
func pack(a *mlxc.Array, bits int) *mlxc.Array {
	shape := a.Shape()
	last := len(shape) - 1
	shape[last] /= 8 / bits
	a = a.View(mlxc.Uint8).Reshape(append(shape, 8/bits)...)
	a = a.BitwiseAnd(scalarLike(a, 1<<bits-1)).LeftShift(bitPositions(bits))
	return a.Sum(last + 1).AsType(mlxc.Uint8)
}

// unpack splits bytes into elements of fewer than 8 bits, along a new last axis.
func unpack(a *mlxc.Array, d dtypes.DType) *mlxc.Array {
	bits := d.Bits()
	unused := scalarLike(a, 8-bits)
	// Move the bits of an element to the top, and then down as the dtype extends its sign.
	up := a.ExpandDims(-1).RightShift(bitPositions(bits)).LeftShift(unused)
	return up.View(mlxDType(d)).RightShift(unused.AsType(mlxDType(d)))
}

// bitPositions returns the positions of the elements in a byte.
func bitPositions(bits int) *mlxc.Array { return mlxc.Arange(mlxc.Uint8, 0, 8, float64(bits)) }
