package customkernels

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// WithVJP returns a differentiable function of a forward kernel. It launches forward on its arguments as launch
// describes, and its vector-Jacobian product is backward, which launches other kernels.
//
// backward returns one gradient for each argument, in the argument's shape. nil stands for zeros: the gradient
// of an argument that is no parameter, such as a size or an index.
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
