package customkernels

import (
	"fmt"
	"math"
	"sync"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// constants are what Constant and Constants made.
var constants struct {
	mu   sync.Mutex
	made map[constantKey]*mlxc.Array
}

type constantKey struct {
	backend mlxc.Backend
	dtype   mlxc.DType
	scalar  bool
	n       int
	bits    [16]uint32
}

// mostConstants bounds what is kept. Programs with ever new shapes begin anew.
const mostConstants = 1024

// Constant is an array without axes that holds the value: an input of kernels that is the same
// in many launches, such as a number of rows. It is made once and shared: nobody may free it.
//
// A new mlxc.Scalar for each launch would cost the host a good part of what the launch does.
// And MLX has scalars in the host's memory, which each threadgroup of a CUDA device would read
// through the bus; a constant is in the device's. It waits for the device when it is made.
func Constant[T int32 | uint32 | float32](value T) *mlxc.Array { return constant(true, value) }

// Constants is the same for 1 to 16 values, along an axis.
func Constants[T int32 | uint32 | float32](values ...T) *mlxc.Array {
	if len(values) < 1 || len(values) > len(constantKey{}.bits) {
		return mlxc.InvalidArray(mlxc.NewError("Constants", fmt.Errorf("%d values: there must be 1 to %d", len(values), len(constantKey{}.bits))))
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
	a := constants.made[key]
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
	if constants.made == nil || len(constants.made) >= mostConstants {
		constants.made = map[constantKey]*mlxc.Array{}
	}
	constants.made[key] = a
	return a
}

// makeConstant makes an array that outlives the caller's scope and is there already, so that no
// graph contains how it was made.
func makeConstant[T int32 | uint32 | float32](key constantKey, values []T) (a *mlxc.Array, err error) {
	mlxc.OutsideScopes(func() {
		switch {
		case key.backend == mlxc.BackendCUDA:
			// What the GPU writes, and is larger than 8 bytes, is in its own memory.
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
