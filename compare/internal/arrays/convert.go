package arrays

import (
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// New returns an array of the values, which are in row-major order, rounded to dtype (to float16 and bfloat16 by way of
// float32). dtype is float32, float16, bfloat16, float64, uint32, int32 or bool; another one gives an invalid array. In
// an integer array NaN becomes the largest integer. In a bool array every value but 0 is true.
func New(values []float64, dtype mlxc.DType, shape []int) *mlxc.Array {
	switch dtype {
	case mlxc.Float32:
		return store(values, shape, func(v float64) float32 { return float32(v) })
	case mlxc.Float16:
		return store(values, shape, func(v float64) float16.Float16 { return float16.Fromfloat32(float32(v)) })
	case mlxc.BFloat16:
		return store(values, shape, func(v float64) bfloat16.BFloat16 { return bfloat16.FromFloat32(float32(v)) })
	case mlxc.Float64:
		return store(values, shape, func(v float64) float64 { return v })
	case mlxc.Uint32:
		return store(values, shape, storeIndex[uint32](math.MaxUint32))
	case mlxc.Int32:
		return store(values, shape, storeIndex[int32](math.MaxInt32))
	case mlxc.Bool:
		return store(values, shape, func(v float64) bool { return v != 0 })
	}
	return mlxc.InvalidArray(fmt.Errorf("compare: cannot store values as %v", dtype))
}

// storeIndex converts a value to an integer. NaN fills the buffer between the elements of a view; it becomes the
// largest index, which is out of range for every table, so a kernel that ignores strides fails.
func storeIndex[T uint32 | int32](largest T) func(float64) T {
	return func(v float64) T {
		if math.IsNaN(v) {
			return largest
		}
		return T(v)
	}
}

func store[T mlxc.Element](values []float64, shape []int, convert func(float64) T) *mlxc.Array {
	data := make([]T, len(values))
	for i, v := range values {
		data[i] = convert(v)
	}
	if len(shape) == 0 {
		return mlxc.Scalar(data[0])
	}
	return mlxc.FromSlice(data, shape...)
}

// Float64s evaluates an array and returns its elements in row-major order, exactly. It returns an error for a dtype
// that [New] does not support.
func Float64s(a *mlxc.Array) ([]float64, error) {
	switch a.DType() {
	case mlxc.Float16:
		return load(a, func(v float16.Float16) float64 { return float64(v.Float32()) })
	case mlxc.BFloat16:
		return load(a, func(v bfloat16.BFloat16) float64 { return float64(v.Float32()) })
	case mlxc.Float64:
		return load(a, func(v float64) float64 { return v })
	case mlxc.Uint32:
		return load(a, func(v uint32) float64 { return float64(v) })
	case mlxc.Int32:
		return load(a, func(v int32) float64 { return float64(v) })
	case mlxc.Bool:
		return load(a, func(v bool) float64 {
			if v {
				return 1
			}
			return 0
		})
	default:
		// Other dtypes and invalid arrays return their error.
		return load(a, func(v float32) float64 { return float64(v) })
	}
}

func load[T mlxc.Element](a *mlxc.Array, convert func(T) float64) ([]float64, error) {
	data, err := mlxc.ToSlice[T](a)
	if err != nil {
		return nil, err
	}
	values := make([]float64, len(data))
	for i, v := range data {
		values[i] = convert(v)
	}
	return values, nil
}
