package mlxc

// #include "mlxg.h"
import "C"

import "github.com/mlxgrad/mlxgrad/internal/products"

// init registers the functions through which package ops multiplies matrices on CUDA devices. See package products.
func init() {
	products.Set(products.Functions[*Array, DType]{
		Available:   func() bool { return CurrentBackend() == BackendCUDA && bool(C.mlxg_products_available()) },
		Undefined:   undefined,
		Reuse:       reuse,
		ReuseCopies: func() uint64 { return uint64(C.mlxg_reuse_copies()) },
		Into:        productInto,
		Beginning:   beginning,
		ScaleRows:   scaleRows,
	})
}

func undefined(d DType, shape ...int) *Array {
	const op = "Undefined"
	if err := checkNew(d, shape); err != nil {
		return invalid(opError(op, err))
	}
	c := cShape(shape)
	return wrap(op, C.mlxg_undefined(&c[0], C.size_t(len(shape)), C.int(d.c())))
}

func reuse(a, after *Array) (elements, memory *Array) {
	const op = "Reuse"
	h, err := acquireAll(op, []*Array{a, after})
	if err != nil {
		return pair(nil, err)
	}
	defer h.release()
	return pair(wrapAll(op, C.mlxg_reuse(h.ptr(), h.n()), a, after))
}

func productInto(p products.Product[*Array]) *Array {
	const op = "ProductInto"
	inputs := []*Array{p.A, p.B, p.Destination, p.Workspace}
	if p.Factor != nil {
		inputs = append(inputs, p.Factor)
	}
	inputs = append(inputs, p.After...)
	h, err := acquireAll(op, inputs)
	if err != nil {
		return invalid(err)
	}
	defer h.release()
	c := C.mlxg_product{
		a_transposed: C.bool(p.TransposedA), b_transposed: C.bool(p.TransposedB),
		accumulate: C.bool(p.Accumulate), scaled: C.bool(p.Factor != nil), tf32: C.bool(TF32Enabled()),
		begin: C.uint64_t(p.Begin),
	}
	return wrap(op, C.mlxg_product_into(c, h.ptr(), h.n()), inputs...)
}

func beginning(memory *Array, rows, columns int) *Array {
	const op = "Beginning"
	ctx, err := memory.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, memory))
	}
	defer memory.release()
	return wrap(op, C.mlxg_beginning(handleWord(ctx), C.int(rows), C.int(columns)), memory)
}

func scaleRows(a, factors, zeros *Array) *Array {
	const op = "ScaleRows"
	inputs := []*Array{a}
	for _, perRow := range []*Array{factors, zeros} {
		if perRow != nil {
			inputs = append(inputs, perRow)
		}
	}
	h, err := acquireAll(op, inputs)
	if err != nil {
		return invalid(err)
	}
	defer h.release()
	return wrap(op, C.mlxg_scale_rows(h.ptr(), h.n(), C.bool(factors != nil)), inputs...)
}
