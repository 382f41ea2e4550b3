package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"slices"
)

// JVP runs f on the primals and returns its outputs and the Jacobian-vector products:
// for every output, the sum over the primals of ∂output/∂primal·tangent, in the output's
// shape and dtype. There is one tangent for every primal, of its shape and dtype.
//
// It computes the products while it runs f, in one pass: where a function has few
// arguments and many outputs it is the cheaper way to the Jacobian. Some operations of
// MLX have no rule for it, custom kernels and scatters among them; they are errors.
// Inside, VJP may be called, and JVP inside VJP.
//
// f runs before JVP returns, on the calling goroutine. An error in f, a panic too
// (as a *PanicError), is returned here.
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
		return nil, nil, opError(op, fmt.Errorf("there are %d primals, but %d tangents", len(primals), len(tangents)), operands...)
	}
	for i, a := range primals {
		if b := tangents[i]; !slices.Equal(a.Shape(), b.Shape()) || a.DType() != b.DType() {
			return nil, nil, opError(op, fmt.Errorf("tangent %d is %s, its primal %s: both must have one shape and dtype",
				i, describe(b.Shape(), b.DType()), describe(a.Shape(), a.DType())), operands...)
		}
	}
	id := register(f)
	defer unregister(id)
	return split(lockedCall(op, operands, id, func(id C.uintptr_t) C.mlxg_results {
		return C.mlxg_jvp(id, p.ptr(), t.ptr(), p.n())
	}))
}
