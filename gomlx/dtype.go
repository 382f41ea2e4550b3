package gomlx

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// A codec converts between the elements of a dtype in Go and an MLX array. The Go types of GoMLX and of package mlxc
// have the same memory layout.
type codec struct {
	dtype mlxc.DType
	read  func(data unsafe.Pointer, n int, dims []int) *mlxc.Array // copies n elements
	write func(a *mlxc.Array, data unsafe.Pointer) error           // copies all elements of a
}

func newCodec[T mlxc.Element](d mlxc.DType) codec {
	return codec{
		dtype: d,
		read: func(data unsafe.Pointer, n int, dims []int) *mlxc.Array {
			s := unsafe.Slice((*T)(data), n)
			if len(dims) == 0 {
				return mlxc.Scalar(s[0])
			}
			return mlxc.FromSlice(s, dims...)
		},
		write: func(a *mlxc.Array, data unsafe.Pointer) error {
			s, err := mlxc.ToSlice[T](a)
			copy(unsafe.Slice((*T)(data), len(s)), s)
			return err
		},
	}
}

// newPackedCodec returns the codec of a dtype whose elements have fewer bits than a byte. GoMLX packs them, the lowest
// bits first. MLX has no such dtype: its arrays have one element per byte.
func newPackedCodec[T int8 | uint8](d mlxc.DType, bits int) codec {
	unpacked := newCodec[T](d)
	perByte := 8 / bits
	return codec{
		dtype: d,
		read: func(data unsafe.Pointer, n int, dims []int) *mlxc.Array {
			elements := make([]T, n)
			for i := range elements {
				b := *(*uint8)(unsafe.Add(data, i/perByte)) << (8 - bits*(i%perByte+1))
				elements[i] = T(b) >> (8 - bits)
			}
			return unpacked.read(unsafe.Pointer(unsafe.SliceData(elements)), n, dims)
		},
		write: func(a *mlxc.Array, data unsafe.Pointer) error {
			elements, err := mlxc.ToSlice[T](a)
			if err != nil || len(elements) == 0 {
				return err
			}
			packed := unsafe.Slice((*uint8)(data), (len(elements)+perByte-1)/perByte)
			clear(packed)
			for i, e := range elements {
				packed[i/perByte] |= uint8(e) << (8 - bits) >> (8 - bits) << (bits * (i % perByte))
			}
			return nil
		},
	}
}

// codecs has the dtypes of GoMLX that MLX arrays can hold.
var codecs = map[dtypes.DType]codec{
	dtypes.Bool:      newCodec[bool](mlxc.Bool),
	dtypes.Int2:      newPackedCodec[int8](mlxc.Int8, 2),
	dtypes.Int4:      newPackedCodec[int8](mlxc.Int8, 4),
	dtypes.Int8:      newCodec[int8](mlxc.Int8),
	dtypes.Int16:     newCodec[int16](mlxc.Int16),
	dtypes.Int32:     newCodec[int32](mlxc.Int32),
	dtypes.Int64:     newCodec[int64](mlxc.Int64),
	dtypes.Uint2:     newPackedCodec[uint8](mlxc.Uint8, 2),
	dtypes.Uint4:     newPackedCodec[uint8](mlxc.Uint8, 4),
	dtypes.Uint8:     newCodec[uint8](mlxc.Uint8),
	dtypes.Uint16:    newCodec[uint16](mlxc.Uint16),
	dtypes.Uint32:    newCodec[uint32](mlxc.Uint32),
	dtypes.Uint64:    newCodec[uint64](mlxc.Uint64),
	dtypes.Float16:   newCodec[float16.Float16](mlxc.Float16),
	dtypes.Float32:   newCodec[float32](mlxc.Float32),
	dtypes.Float64:   newCodec[float64](mlxc.Float64),
	dtypes.BFloat16:  newCodec[bfloat16.BFloat16](mlxc.BFloat16),
	dtypes.Complex64: newCodec[complex64](mlxc.Complex64),
}

// supports reports whether arrays of the dtype can be computed on the backend's device.
func (b *backend) supports(d dtypes.DType) bool {
	_, ok := codecs[d]
	return ok && (d != dtypes.Float64 || b.device == mlxc.CPU)
}

// checkShape returns an error if the backend has no arrays of the shape.
func (b *backend) checkShape(op string, s shapes.Shape) error {
	if !s.DType.IsSupported() || slices.ContainsFunc(s.Dimensions, func(n int) bool { return n < 0 }) {
		return fmt.Errorf("gomlx: %s: the shape %v is invalid", op, s)
	}
	if !b.supports(s.DType) {
		return notImplemented("%s: MLX has no dtype %v on the %v", op, s.DType, b.device)
	}
	return nil
}

// flatData returns the address of a flat slice of GoMLX. It returns an error unless the slice holds the elements of the
// shape.
func flatData(flat any, s shapes.Shape) (unsafe.Pointer, error) {
	v := reflect.ValueOf(flat)
	if v.Kind() != reflect.Slice {
		return nil, fmt.Errorf("gomlx: the flat data is a %T; it must be a slice", flat)
	}
	want := s.Size()
	if s.DType.IsPacked() {
		want = s.DType.SizeForDimensions(s.Dimensions...)
	}
	d := dtypes.FromGoType(v.Type().Elem())
	if d != s.DType && !(s.DType.IsPacked() && d == dtypes.Uint8) {
		return nil, fmt.Errorf("gomlx: the flat data is a %T; the shape is %v", flat, s)
	}
	if v.Len() != want {
		return nil, fmt.Errorf("gomlx: the flat data has %d elements; the shape %v has %d", v.Len(), s, want)
	}
	return v.UnsafePointer(), nil
}

// mlxDType returns the dtype of the MLX arrays that hold elements of d. d must be a key of codecs.
func mlxDType(d dtypes.DType) mlxc.DType { return codecs[d].dtype }
