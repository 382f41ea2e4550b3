package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"slices"
)

// JVP runs f on the primals and returns its outputs and the Jacobian-vector products: for every output, the sum of
// ∂output/∂primal·tangent over the primals, in the output's shape, and in its dtype if that is floating-point or
// complex. For boolean outputs, the products are 0 in a dtype that MLX selects. For integer outputs, they have no
// meaning. There is one tangent per primal, of its shape and dtype.
//
// JVP uses forward mode: it computes the products while it runs f, in one pass. It is cheaper than VJP for a function
// with few arguments and many outputs. Some operations of MLX have no rule for it, among them custom kernels and
// scatters; they return errors. VJP and JVP may be nested.
//
// f runs before JVP returns, on the calling goroutine. JVP returns errors of f; a panic becomes a *PanicError.
func JVP(f Func, primals, tangents []*Array) (outputs, jvps []*Array, err error) {
	const op = "JVP"
	p, t, err := acquireBoth(op, f, primals, tangents)
	if err != nil {
		return nil, nil, err
	}
	defer p.release()
	defer t.release()
	operands := slices.Concat(primals, tangents)
	if len(tangents) != len(primals) {
		return nil, nil, opError(op, fmt.Errorf("there are %d primals, but %d tangents", len(primals), len(tangents)),
			operands...)
	}
	for i, a := range primals {
		if b := tangents[i]; !slices.Equal(a.Shape(), b.Shape()) || a.DType() != b.DType() {
			return nil, nil, opError(op, fmt.Errorf("tangent %d is %s, its primal %s: shape and dtype must be equal",
				i, describe(b.Shape(), b.DType()), describe(a.Shape(), a.DType())), operands...)
		}
	}
	id := register(f)
	defer unregister(id)
	return split(lockedCall(op, operands, id, func(id C.uintptr_t) C.mlxg_results {
		return C.mlxg_jvp(id, p.ptr(), t.ptr(), p.n())
	}))
}
