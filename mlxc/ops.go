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
	const keepdims = false
	return overAxes(op, f, a, axes, keepdims)
}

// overAxes works over axes, or over all of them if none are given. What flag is, f
// says: of a reduction, keepdims.
func overAxes(op string, f C.mlxg_axes_fn, a *Array, axes []int, flag bool) *Array {
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
	return wrap(op, C.mlxg_axes(f, ca, &c[0], C.size_t(len(axes)), C.bool(flag)), a)
}

// alongAxis is the shape of an operation on several arrays along one axis.
func alongAxis(op string, axis int, f func(h handles, axis C.int) C.mlxg_result, arrays ...*Array) *Array {
	h, err := acquireAll(op, arrays)
	if err != nil {
		return invalid(err)
	}
	defer h.release()
	c, err := cInts([]int{axis})
	if err != nil {
		return invalid(opError(op, err, arrays...))
	}
	return wrap(op, f(h, c[0]), arrays...)
}

// orNothing is for operations that MLX's CPU backend ends the process over if there
// are no elements: it divides by their number. It gives the array, or one like it
// that needs no computation.
func (a *Array) orNothing() *Array {
	if a.Err() != nil || a.Size() > 0 {
		return a
	}
	defer a.Free()
	return Zeros(a.DType(), a.Shape()...)
}
