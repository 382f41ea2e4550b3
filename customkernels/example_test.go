package customkernels_test

import (
	"fmt"
	"testing/fstest"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A user's shader: y = x³, and its gradient dx = 3·x²·dy.
const cube = `
#include <metal_stdlib>
using namespace metal;

kernel void cube(device const float* x [[buffer(0)]],
                 device float* y [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) {
  y[i] = x[i] * x[i] * x[i];
}

kernel void cube_backward(device const float* x [[buffer(0)]],
                          device const float* dy [[buffer(1)]],
                          device float* dx [[buffer(2)]],
                          uint i [[thread_position_in_grid]]) {
  dx[i] = 3 * x[i] * x[i] * dy[i];
}
`

func ExampleWithVJP() {
	lib, err := customkernels.Load(fstest.MapFS{"cube.metal": {Data: []byte(cube)}}, "cube.metal")
	if err != nil {
		fmt.Println(err)
		return
	}
	forward, err := lib.Kernel("cube")
	if err != nil {
		fmt.Println(err)
		return
	}
	backward, err := lib.Kernel("cube_backward")
	if err != nil {
		fmt.Println(err)
		return
	}
	perElement := func(inputs []*mlxc.Array) customkernels.Launch {
		x := inputs[0]
		return customkernels.Launch{
			Grid:        [3]int{x.Size()},
			Threadgroup: [3]int{256},
			Outputs:     []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}},
		}
	}
	f := customkernels.WithVJP(forward, perElement, func(primals, cotangents, _ []*mlxc.Array) []*mlxc.Array {
		return backward.Launch(perElement(primals), primals[0], cotangents[0])
	})
	x := mlxc.FromSlice([]float32{1, 2, 3})
	y, grads, err := mlxc.VJP(f, []*mlxc.Array{x}, []*mlxc.Array{mlxc.Ones(mlxc.Float32, 3)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(y[0], grads[0])
	// Output: array([1, 8, 27], dtype=float32) array([3, 12, 27], dtype=float32)
}
