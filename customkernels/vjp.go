package customkernels

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// WithVJP returns a differentiable function that launches forward. launch returns the launch for the function's
// arguments. backward computes the vector-Jacobian product, usually with other kernels.
//
// backward returns one gradient for each argument, in the argument's shape and dtype. Unlike in other uses of a
// VJPFunc, a nil gradient stands for zeros, for arguments without a gradient such as sizes and indices.
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
