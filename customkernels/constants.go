package customkernels

import (
	"fmt"
	"math"
	"sync"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// constants caches the arrays of Constant and Constants, and the keys of the former.
var constants struct {
	mu      sync.Mutex
	arrays  map[constantKey]*mlxc.Array
	scalars map[*mlxc.Array]constantKey
}

type constantKey struct {
	backend mlxc.Backend
	dtype   mlxc.DType
	scalar  bool
	n       int
	bits    [16]uint32
}

// maxConstants bounds the cache, because a program may use any number of values. A full cache is emptied.
const maxConstants = 1024

// Constant returns an array without axes that holds the value, such as a number of rows, as an input of kernels. The
// array is cached and shared: do not free it.
//
// Constant is cheaper than mlxc.Scalar, which allocates an array at each launch. MLX keeps scalars in host memory, and
// each threadgroup on an NVIDIA GPU would read them over the bus. There a launch passes a constant by value. The first
// call with a value may block while the array is written to the device. Exported graphs contain the array.
func Constant[T int32 | uint32 | float32](value T) *mlxc.Array { return constant(true, value) }

// Constants returns a cached array of 1 to 16 values along one axis, in device memory on an NVIDIA GPU. See [Constant].
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
	if a != nil && a.Err() == nil { // a caller may have freed it by mistake
		return a
	}
	a, err := makeConstant(key, values)
	if err != nil {
		return mlxc.InvalidArray(err)
	}
	constants.mu.Lock()
	defer constants.mu.Unlock()
	if constants.arrays == nil || len(constants.arrays) >= maxConstants {
		constants.arrays, constants.scalars = map[constantKey]*mlxc.Array{}, map[*mlxc.Array]constantKey{}
	}
	constants.arrays[key] = a
	if scalar {
		constants.scalars[a] = key
	}
	return a
}

// inputValues holds the inputs of a launch that are arrays of Constant.
type inputValues struct {
	inputs uint32   // a bit for each input
	bits   []uint32 // of the values, in the order of the inputs
}

func valuesOf(inputs []*mlxc.Array) (v inputValues) {
	constants.mu.Lock()
	defer constants.mu.Unlock()
	for i, a := range inputs {
		if key, ok := constants.scalars[a]; ok && i < 32 {
			v.inputs |= 1 << i
			v.bits = append(v.bits, key.bits[0])
		}
	}
	return v
}

// makeConstant returns an evaluated array outside the caller's scope, so that it outlives the scope and no graph holds
// its inputs.
func makeConstant[T int32 | uint32 | float32](key constantKey, values []T) (a *mlxc.Array, err error) {
	mlxc.OutsideScopes(func() {
		switch {
		case key.backend == mlxc.BackendCUDA:
			// MLX puts the output of a GPU operation into device memory if it has more than 8 bytes. So concatenate
			// four copies, and take the first.
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
