package sanitizer

import (
	"encoding/binary"
	"math"

	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// Append appends v to data as an element of dtype d, in the machine's byte order. Like MLX's conversion it rounds to
// float32 and then to the dtype, both to nearest even, and wraps integers around.
func (d DType) Append(data []byte, v float64) []byte {
	order := binary.NativeEndian
	f, n := float32(v), uint64(int64(v))
	switch d {
	case Bool:
		if v != 0 {
			return append(data, 1)
		}
		return append(data, 0)
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
