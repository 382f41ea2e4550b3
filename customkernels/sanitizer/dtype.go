package sanitizer

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// A DType is the element type of a buffer, with MLX's names and numbers, or of the components of a texture.
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
	Float64
	BFloat16
	Complex64
)

// The dtypes of textures alone. They are integers that stand for the numbers from 0 to 1 (unorm) or from -1 to 1 (snorm).
const (
	Unorm8 DType = Complex64 + 1 + iota
	Snorm8
	Unorm16
	Snorm16
)

var dtypes = [...]struct {
	name, metal string
	size        int
}{
	Invalid: {"invalid", "", 0},
	Bool:    {"bool", "bool", 1},
	Uint8:   {"uint8", "uint8_t", 1}, Uint16: {"uint16", "uint16_t", 2}, Uint32: {
		"uint32", "uint32_t",
		4,
	}, Uint64: {"uint64", "uint64_t", 8},
	Int8: {"int8", "int8_t", 1}, Int16: {"int16", "int16_t", 2}, Int32: {"int32", "int32_t", 4}, Int64: {
		"int64",
		"int64_t", 8,
	},
	Float16: {"float16", "float16_t", 2}, Float32: {"float32", "float", 4}, Float64: {"float64", "double", 8},
	BFloat16: {"bfloat16", "bfloat16_t", 2}, Complex64: {"complex64", "complex64_t", 8},
	Unorm8: {"unorm8", "", 1}, Snorm8: {"snorm8", "", 1}, Unorm16: {"unorm16", "", 2}, Snorm16: {"snorm16", "", 2},
}

// DTypes returns the dtypes of buffers in MLX's order.
func DTypes() []DType {
	var all []DType
	for d := Bool; d <= Complex64; d++ {
		all = append(all, d)
	}
	return all
}

// dtypeOf returns the dtype of an element type of Metal, such as half, or Invalid.
func dtypeOf(element string) DType {
	if name := msl.DType(element); name != "" {
		for d, t := range dtypes {
			if t.metal == name {
				return DType(d)
			}
		}
	}
	return Invalid
}

// native returns Metal's name of the dtype, such as "bfloat".
func (d DType) native() string {
	switch d {
	case Float16:
		return "half"
	case BFloat16:
		return "bfloat"
	}
	return dtypes[d].metal
}

// String returns MLX's name of the dtype, such as "bfloat16".
func (d DType) String() string {
	if int(d) >= len(dtypes) {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// Size returns the size of an element in bytes, 0 for an invalid dtype.
func (d DType) Size() int {
	if int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].size
}

// cell returns the size in bytes of one number of an element. An element of complex64 has two numbers.
func (d DType) cell() int {
	if d == Complex64 {
		return 4
	}
	return d.Size()
}
