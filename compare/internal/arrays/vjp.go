package arrays

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// VJP builds the outputs of f at the arguments in, and the gradients with respect to the arguments at the positions
// wrt. There is one cotangent for each output. Without positions it only calls f, since MLX refuses to differentiate
// with respect to nothing.
func VJP(f mlxc.Func, in []*mlxc.Array, wrt []int, cotangents []*mlxc.Array) (outputs, gradients []*mlxc.Array, err error) {
	if len(wrt) == 0 {
		return f(in), nil, nil
	}
	primals := make([]*mlxc.Array, len(wrt))
	for k, i := range wrt {
		primals[k] = in[i]
	}
	return mlxc.VJP(func(primals []*mlxc.Array) []*mlxc.Array {
		args := slices.Clone(in)
		for k, i := range wrt {
			args[i] = primals[k]
		}
		return f(args)
	}, primals, cotangents)
}
