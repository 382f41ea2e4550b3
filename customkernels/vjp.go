package customkernels

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// WithVJP pairs a forward kernel with a gradient as one differentiable function.
// The function launches forward on its arguments, as launch describes for them; its
// vector-Jacobian product is backward, which launches kernels of its own.
//
// backward gives one array for every argument, in its shape; nil stands for zeros,
// which is what an argument that is no parameter (a size, an index) gets.
func WithVJP(forward *Kernel, launch func(inputs []*mlxc.Array) Launch, backward mlxc.VJPFunc) mlxc.Func {
	return mlxc.CustomVJP(
		func(inputs []*mlxc.Array) []*mlxc.Array { return forward.Launch(launch(inputs), inputs...) },
		func(primals, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			grads := slices.Clone(backward(primals, cotangents, outputs))
			for i, g := range grads {
				if g == nil && i < len(primals) {
					grads[i] = mlxc.Zeros(primals[i].DType(), primals[i].Shape()...)
				}
			}
			return grads
		})
}
