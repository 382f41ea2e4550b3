package mlxc

import (
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// DType is the element type of an array. The zero value, Invalid, is the dtype of an invalid array.
type DType uint8

// The dtypes of MLX.
const (
	Invalid DType = iota
	Bool
	Uint8
	Uint16
	Uint32
	Uint64
	Int8
	Int16
	Int32
	Int64
	Float16
	Float32
	Float64 // CPU only; MLX computes its exp, erf, sin and softmax in single precision
	BFloat16
	Complex64
)

var dtypes = [...]struct {
	name string
	size int
}{
	Invalid: {"invalid", 0},
	Bool:    {"bool", 1}, Uint8: {"uint8", 1}, Uint16: {"uint16", 2}, Uint32: {"uint32", 4},
	Uint64: {"uint64", 8}, Int8: {"int8", 1}, Int16: {"int16", 2}, Int32: {"int32", 4},
	Int64: {"int64", 8}, Float16: {"float16", 2}, Float32: {"float32", 4},
	Float64: {"float64", 8}, BFloat16: {"bfloat16", 2}, Complex64: {"complex64", 8},
}

// DTypes returns every dtype, in MLX's order.
func DTypes() []DType {
	all := make([]DType, 0, len(dtypes)-1)
	for d := Bool; d <= Complex64; d++ {
		all = append(all, d)
	}
	return all
}

// String returns MLX's name of the dtype, such as "bfloat16".
func (d DType) String() string {
	if int(d) >= len(dtypes) {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// Size returns the size of an element in bytes, or 0 for an invalid dtype.
func (d DType) Size() int {
	if int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].size
}

// IsFloating reports whether d is a real floating-point dtype.
func (d DType) IsFloating() bool {
	return d == Float16 || d == Float32 || d == Float64 || d == BFloat16
}

// IsInteger reports whether d is an integer dtype; Bool is not.
func (d DType) IsInteger() bool { return d >= Uint8 && d <= Int64 }

// exact reports whether d is an integer dtype or Bool.
func (d DType) exact() bool { return d >= Bool && d <= Int64 }

// integerRange returns the minimum and the maximum of an integer dtype. For Uint64, greatest is math.MaxInt.
func (d DType) integerRange() (least, greatest int) {
	unused := 64 - 8*d.Size()
	if d >= Int8 {
		return math.MinInt >> unused, math.MaxInt >> unused
	}
	return 0, int(uint64(math.MaxUint64) >> max(unused, 1))
}

// c returns MLX's number of the dtype. MLX's enumeration starts with bool at 0.
func (d DType) c() int          { return int(d) - 1 }
func dtypeFromC(d int) DType    { return DType(d + 1) }
func (d DType) valid() bool     { return d >= Bool && d <= Complex64 }
func dtypeOf[T Element]() DType { var zero T; return dtypeOfValue(any(zero)) }
func dtypeOfValue(v any) DType {
	switch v.(type) {
	case bool:
		return Bool
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case float16.Float16:
		return Float16
	case float32:
		return Float32
	case float64:
		return Float64
	case bfloat16.BFloat16:
		return BFloat16
	case complex64:
		return Complex64
	}
	return Invalid
}

// Element is a Go type for reading and writing elements, one per dtype of MLX.
type Element interface {
	bool | uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 |
		float16.Float16 | float32 | float64 | bfloat16.BFloat16 | complex64
}
