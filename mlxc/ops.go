package mlxc

// #include "mlxg.h"
import "C"

// The shims that serve every operation of a regular signature.

func unary(op string, f C.mlxg_unary_fn, a *Array) *Array {
	ca, err := a.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, a))
	}
	defer a.release()
	return wrap(op, C.mlxg_unary(f, ca), a)
}

func binary(op string, f C.mlxg_binary_fn, a, b *Array) *Array {
	ca, err := a.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, a, b))
	}
	defer a.release()
	cb, err := b.acquire()
	if err != nil {
		return invalid(operandError(op, err, 1, a, b))
	}
	defer b.release()
	return wrap(op, C.mlxg_binary(f, ca, cb), a, b)
}

func ternary(op string, f C.mlxg_ternary_fn, a, b, c *Array) *Array {
	h, err := acquireAll(op, []*Array{a, b, c})
	if err != nil {
		return invalid(err)
	}
	defer h.release()
	return wrap(op, C.mlxg_ternary(f, h.ctx[0], h.ctx[1], h.ctx[2]), a, b, c)
}

// reduce reduces over axes, or over all of them if none are given.
func reduce(op string, f C.mlxg_axes_fn, a *Array, axes []int) *Array {
	ca, err := a.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, a))
	}
	defer a.release()
	if len(axes) == 0 {
		axes = nil // not the caller's buffer
		for i := range a.NDim() {
			axes = append(axes, i)
		}
	}
	c, err := cInts(axes)
	if err != nil {
		return invalid(opError(op, err, a))
	}
	return wrap(op, C.mlxg_reduce(f, ca, &c[0], C.size_t(len(axes)), false), a)
}
