package ops

import (
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// withGradient computes forward(args) and gives it the gradient backward. An argument
// may be nil, which stands for one that the caller left out: both functions then see
// nil in its place, and backward's result for it is not looked at.
func withGradient(args []*mlxc.Array, forward mlxc.Func, backward mlxc.VJPFunc) []*mlxc.Array {
	// What the functions below hold lives as long as the graph: so not args themselves.
	var given []*mlxc.Array
	is := make([]bool, len(args))
	for i, a := range args {
		if is[i] = a != nil; is[i] {
			given = append(given, a)
		}
	}
	spread := func(given []*mlxc.Array) []*mlxc.Array {
		all := make([]*mlxc.Array, len(is))
		for i, next := 0, 0; i < len(is); i++ {
			if is[i] {
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
				if is[i] {
					grads = append(grads, g)
				}
			}
			return grads
		})(given)
}
