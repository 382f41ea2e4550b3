package sanitizer

import (
	"encoding/binary"
	"math"

	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// Append appends v to data as an element of dtype d, in the machine's byte order. Like MLX's conversion it rounds to
// float32 and then to the dtype, both to nearest even, and wraps integers around. Normalized integers saturate, as in
// Metal.
func (d DType) Append(data []byte, v float64) []byte {
	order := binary.NativeEndian
	f, n := float32(v), uint64(int64(v))
	switch d {
	case Bool:
		if v != 0 {
			return append(data, 1)
		}
		return append(data, 0)
	case Unorm8, Snorm8:
		return append(data, byte(d.normalized(f)))
	case Unorm16, Snorm16:
		return order.AppendUint16(data, uint16(d.normalized(f)))
	case Uint8, Int8:
		return append(data, byte(n))
	case Uint16, Int16:
		return order.AppendUint16(data, uint16(n))
	case Uint32, Int32:
		return order.AppendUint32(data, uint32(n))
	case Uint64, Int64:
		return order.AppendUint64(data, n)
	case Float16:
		return order.AppendUint16(data, float16.Fromfloat32(f).Bits())
	case BFloat16:
		return order.AppendUint16(data, bfloat16.FromFloat32(f).Bits())
	case Float32:
		return order.AppendUint32(data, math.Float32bits(f))
	case Float64:
		return order.AppendUint64(data, math.Float64bits(float64(f)))
	case Complex64:
		return order.AppendUint32(order.AppendUint32(data, math.Float32bits(f)), 0)
	}
	return data
}

// scale returns the integer that stands for 1 in a normalized dtype, and 0 for another dtype.
func (d DType) scale() float64 {
	switch d {
	case Unorm8:
		return 255
	case Snorm8:
		return 127
	case Unorm16:
		return 65535
	case Snorm16:
		return 32767
	}
	return 0
}

// normalized returns the integer that stands for a number in a normalized dtype.
func (d DType) normalized(f float32) int {
	low := 0.0
	if d == Snorm8 || d == Snorm16 {
		low = -1
	}
	if f != f {
		return 0
	}
	return int(math.RoundToEven(min(max(float64(f), low), 1) * d.scale()))
}

// values returns the elements of data as numbers. Elements of complex64 are their real parts.
func (d DType) values(data []byte) []float64 {
	order := binary.NativeEndian
	list := make([]float64, 0, len(data)/max(d.Size(), 1))
	for ; len(data) >= d.Size() && d.Size() > 0; data = data[d.Size():] {
		var v float64
		switch d {
		case Bool, Uint8:
			v = float64(data[0])
		case Unorm8:
			v = float64(data[0]) / d.scale()
		case Unorm16:
			v = float64(order.Uint16(data)) / d.scale()
		case Snorm8:
			v = max(float64(int8(data[0]))/d.scale(), -1)
		case Snorm16:
			v = max(float64(int16(order.Uint16(data)))/d.scale(), -1)
		case Int8:
			v = float64(int8(data[0]))
		case Uint16:
			v = float64(order.Uint16(data))
		case Int16:
			v = float64(int16(order.Uint16(data)))
		case Uint32:
			v = float64(order.Uint32(data))
		case Int32:
			v = float64(int32(order.Uint32(data)))
		case Uint64:
			v = float64(order.Uint64(data))
		case Int64:
			v = float64(int64(order.Uint64(data)))
		case Float16:
			v = float64(float16.Frombits(order.Uint16(data)).Float32())
		case BFloat16:
			v = float64(bfloat16.FromBits(order.Uint16(data)).Float32())
		case Float32, Complex64:
			v = float64(math.Float32frombits(order.Uint32(data)))
		case Float64:
			v = math.Float64frombits(order.Uint64(data))
		}
		list = append(list, v)
	}
	return list
}

// epsilon returns the distance from 1 to the next greater number of a floating-point dtype, and 0 for another dtype.
func (d DType) epsilon() float64 {
	switch d {
	case Float16:
		return 0x1p-10
	case BFloat16:
		return 0x1p-7
	case Float32, Complex64:
		return 0x1p-23
	case Float64:
		return 0x1p-52
	case Unorm8, Snorm8, Unorm16, Snorm16:
		return 1 / d.scale()
	}
	return 0
}
