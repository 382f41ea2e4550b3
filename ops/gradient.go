package ops

import (
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// withGradient computes forward(args) and gives it the gradient backward. An argument
// may be nil, which stands for one that the caller left out: both functions then see
// nil in its place, and backward's result for it is not looked at.
func withGradient(args []*mlxc.Array, forward mlxc.Func, backward mlxc.VJPFunc) []*mlxc.Array {
	var given []*mlxc.Array
	for _, a := range args {
		if a != nil {
			given = append(given, a)
		}
	}
	spread := func(given []*mlxc.Array) []*mlxc.Array {
		all := make([]*mlxc.Array, len(args))
		for i, next := 0, 0; i < len(args); i++ {
			if args[i] != nil {
				all[i] = given[next]
				next++
			}
		}
		return all
	}
	return mlxc.CustomVJP(
		func(given []*mlxc.Array) []*mlxc.Array { return forward(spread(given)) },
		func(primals, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			var grads []*mlxc.Array
			for i, g := range backward(spread(primals), cotangents, outputs) {
				if args[i] != nil {
					grads = append(grads, g)
				}
			}
			return grads
		})(given)
}
