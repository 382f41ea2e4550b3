package customkernels

import (
	"fmt"
	"math"
	"sync"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// constants caches the arrays of Constant and Constants.
var constants struct {
	mu     sync.Mutex
	arrays map[constantKey]*mlxc.Array
}

type constantKey struct {
	backend mlxc.Backend
	dtype   mlxc.DType
	scalar  bool
	n       int
	bits    [16]uint32
}

// maxConstants bounds the cache, which is emptied when full: a program may use new shapes forever.
const maxConstants = 1024

// Constant returns an array without axes that holds the value, such as a number of rows, as an input of kernels. The
// array is cached and shared: do not free it.
//
// Constant is cheaper than mlxc.Scalar at each launch. A scalar costs the host a large part of the time of a launch,
// and MLX keeps it in host memory, which each threadgroup of a CUDA device would read through the bus. A constant is in
// device memory. The first call with a value may wait for the device.
func Constant[T int32 | uint32 | float32](value T) *mlxc.Array { return constant(true, value) }

// Constants returns a cached array of 1 to 16 values along one axis. See [Constant].
func Constants[T int32 | uint32 | float32](values ...T) *mlxc.Array {
	if most := len(constantKey{}.bits); len(values) < 1 || len(values) > most {
		return mlxc.InvalidArray(mlxc.NewError("Constants", fmt.Errorf("%d values: there must be 1 to %d",
			len(values), most)))
	}
	return constant(false, values...)
}

func constant[T int32 | uint32 | float32](scalar bool, values ...T) *mlxc.Array {
	key := constantKey{backend: mlxc.CurrentBackend(), scalar: scalar, n: len(values)}
	for i, v := range values {
		switch v := any(v).(type) {
		case int32:
			key.dtype, key.bits[i] = mlxc.Int32, uint32(v)
		case uint32:
			key.dtype, key.bits[i] = mlxc.Uint32, v
		case float32:
			key.dtype, key.bits[i] = mlxc.Float32, math.Float32bits(v)
		}
	}
	constants.mu.Lock()
	a := constants.arrays[key]
	constants.mu.Unlock()
	if a != nil && a.Err() == nil { // not freed by mistake
		return a
	}
	a, err := makeConstant(key, values)
	if err != nil {
		return mlxc.InvalidArray(err)
	}
	constants.mu.Lock()
	defer constants.mu.Unlock()
	if constants.arrays == nil || len(constants.arrays) >= maxConstants {
		constants.arrays = map[constantKey]*mlxc.Array{}
	}
	constants.arrays[key] = a
	return a
}

// makeConstant returns an evaluated array outside the caller's scope, so that it outlives the scope and no graph holds
// its inputs.
func makeConstant[T int32 | uint32 | float32](key constantKey, values []T) (a *mlxc.Array, err error) {
	mlxc.OutsideScopes(func() {
		switch {
		case key.backend == mlxc.BackendCUDA:
			// MLX allocates arrays of more than 8 bytes that the GPU writes in device memory.
			a = mlxc.FromSlice(values)
			a = mlxc.Concatenate(0, a, a, a, a).Slice([]int{0}, []int{key.n}, nil)
			if key.scalar {
				a = a.Reshape()
			}
			err = mlxc.Eval(a)
		case key.scalar:
			a = mlxc.Scalar(values[0])
		default:
			a = mlxc.FromSlice(values)
		}
	})
	return a, err
}
