package compare

import (
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// DTypes returns the dtypes that gradients are compared in, in the order of reports.
func DTypes() []mlxc.DType {
	return []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16}
}

// spacing is the distance from 1 to the next larger number, the eps of the rule. Integers have none:
// they must be exact.
func spacing(dtype mlxc.DType) float64 {
	switch dtype {
	case mlxc.Float32:
		return 0x1p-23
	case mlxc.Float16:
		return 0x1p-10
	case mlxc.BFloat16:
		return 0x1p-7
	case mlxc.Uint32:
		return 0
	}
	panic("compare: no spacing for " + dtype.String())
}

// spacing is that of a dtype, as far as the case is computed in it. TF32's counts twice, since a product
// has two factors that were not of TF32 before.
func (c Case) spacing(dtype mlxc.DType) float64 {
	if c.Products && dtype == mlxc.Float32 && tf32() == "on" {
		return 2 * 0x1p-10
	}
	return spacing(dtype)
}

// tf32 tells whether float32 matrices are multiplied as TF32, "on" or "off", or "" where there is no such
// thing.
func tf32() string {
	switch {
	case mlxc.CurrentBackend() != mlxc.BackendCUDA:
		return ""
	case mlxc.TF32():
		return "on"
	}
	return "off"
}

// toArray stores values in a dtype, rounding them to the nearest that it has.
func toArray(values []float64, dtype mlxc.DType, shape []int) *mlxc.Array {
	switch dtype {
	case mlxc.Float32:
		return store(values, shape, func(v float64) float32 { return float32(v) })
	case mlxc.Float16:
		return store(values, shape, func(v float64) float16.Float16 { return float16.Fromfloat32(float32(v)) })
	case mlxc.BFloat16:
		return store(values, shape, func(v float64) bfloat16.BFloat16 { return bfloat16.FromFloat32(float32(v)) })
	case mlxc.Uint32:
		return store(values, shape, storeIndex[uint32](math.MaxUint32))
	case mlxc.Int32:
		return store(values, shape, storeIndex[int32](math.MaxInt32))
	case mlxc.Bool:
		return store(values, shape, func(v float64) bool { return v != 0 })
	}
	return mlxc.InvalidArray(fmt.Errorf("compare: cannot store values as %v", dtype))
}

// storeIndex makes NaN, the filler between the elements of a view, the largest index, which no table has.
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

// toFloat64 evaluates an array and returns its elements, exactly.
func toFloat64(a *mlxc.Array) ([]float64, error) {
	switch a.DType() {
	case mlxc.Float16:
		return load(a, func(v float16.Float16) float64 { return float64(v.Float32()) })
	case mlxc.BFloat16:
		return load(a, func(v bfloat16.BFloat16) float64 { return float64(v.Float32()) })
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
		// An array of any other dtype, and an invalid one, gives its error here.
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
