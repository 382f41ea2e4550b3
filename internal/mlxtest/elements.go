package mlxtest

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// Read evaluates an array of T's dtype and returns its elements in row-major order. An error fails the test.
func Read[T mlxc.Element](t testing.TB, a *mlxc.Array) []T {
	t.Helper()
	elements, err := mlxc.ToSlice[T](a)
	require.NoError(t, err)
	return elements
}

// Wide evaluates an array of any real dtype and returns its elements as float64. The conversion runs on the CPU because
// GPUs have no float64.
func Wide(t testing.TB, a *mlxc.Array) (v []float64) {
	t.Helper()
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() { v = Read[float64](t, a.AsType(mlxc.Float64)) }))
	return v
}

// Near requires an array of any real dtype to have the wanted elements, within tolerance times the larger of 1 and
// the element's magnitude. Infinities and NaN must be equal.
func Near(t testing.TB, want []float64, got *mlxc.Array, tolerance float64) {
	t.Helper()
	v := Wide(t, got)
	require.Len(t, v, len(want))
	for i := range want {
		if want[i] == v[i] || math.IsNaN(want[i]) && math.IsNaN(v[i]) {
			continue
		}
		require.InDelta(t, want[i], v[i], tolerance*math.Max(1, math.Abs(want[i])), "element %d of %v", i, got)
	}
}

// Counting returns a float32 array with the elements 0, 1, 2, … in row-major order.
func Counting(shape ...int) *mlxc.Array {
	return mlxc.Arange(mlxc.Float32, 0, float64(Size(shape)), 1).Reshape(shape...)
}

// Normal returns a float32 array of samples of the standard normal distribution.
func Normal(seed uint64, shape ...int) *mlxc.Array {
	return mlxc.RandomNormal(mlxc.RandomKey(seed), mlxc.Float32, shape...)
}

// Dominant returns random square matrices whose diagonal is increased by 5, far from singular.
func Dominant(seed uint64, shape ...int) *mlxc.Array {
	n := shape[len(shape)-1]
	return Normal(seed, shape...).Add(mlxc.Eye(mlxc.Float32, n, n, 0).MulScalar(5))
}

// Elements evaluates an array and returns its elements as a slice of its dtype's Go type. An error fails the test.
func Elements(t testing.TB, a *mlxc.Array) any {
	t.Helper()
	switch a.DType() {
	case mlxc.Bool:
		return Read[bool](t, a)
	case mlxc.Uint8:
		return Read[uint8](t, a)
	case mlxc.Uint16:
		return Read[uint16](t, a)
	case mlxc.Uint32:
		return Read[uint32](t, a)
	case mlxc.Uint64:
		return Read[uint64](t, a)
	case mlxc.Int8:
		return Read[int8](t, a)
	case mlxc.Int16:
		return Read[int16](t, a)
	case mlxc.Int32:
		return Read[int32](t, a)
	case mlxc.Int64:
		return Read[int64](t, a)
	case mlxc.Float16:
		return Read[float16.Float16](t, a)
	case mlxc.Float32:
		return Read[float32](t, a)
	case mlxc.Float64:
		return Read[float64](t, a)
	case mlxc.BFloat16:
		return Read[bfloat16.BFloat16](t, a)
	case mlxc.Complex64:
		return Read[complex64](t, a)
	}
	require.NoError(t, a.Err())
	t.Fatalf("the dtype is %v", a.DType())
	return nil
}

// RequireFiles requires that a folder contains the named files and no others.
func RequireFiles(t testing.TB, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	found := []string{}
	for _, e := range entries {
		found = append(found, e.Name())
	}
	require.ElementsMatch(t, names, found)
}
