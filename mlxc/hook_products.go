package mlxc

// #include "mlxg.h"
import "C"

import "github.com/mlxgrad/mlxgrad/internal/products"

// init registers the functions through which package ops multiplies matrices on CUDA devices. See package products.
func init() {
	products.Set(products.Functions[*Array]{
		Available:   func() bool { return CurrentBackend() == BackendCUDA && bool(C.mlxg_products_available()) },
		Reuse:       reuse,
		ReuseCopies: func() uint64 { return uint64(C.mlxg_reuse_copies()) },
		Into:        productInto,
		ScaleRows:   scaleRows,
	})
}

func reuse(a, after *Array, size products.Shape) (elements, memory *Array) {
	const op = "Reuse"
	h, err := acquireAll(op, []*Array{a, after})
	if err != nil {
		return pair(nil, err)
	}
	defer h.release()
	return pair(wrapAll(op, C.mlxg_reuse(h.ptr(), h.n(), C.int(size[0]), C.int(size[1])), a, after))
}

func productInto(p products.Product[*Array]) *Array {
	const op = "ProductInto"
	inputs := []*Array{p.A, p.B}
	if p.Destination != nil {
		inputs = append(inputs, p.Destination)
	}
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
		in_place: C.bool(p.Destination != nil), accumulate: C.bool(p.Accumulate), scaled: C.bool(p.Factor != nil),
		tf32: C.bool(TF32Enabled()), b_first: C.int(p.FirstB), b_end: C.int(p.EndB),
		rows: C.int(p.Result[0]), columns: C.int(p.Result[1]),
		memory_rows: C.int(p.Memory[0]), memory_columns: C.int(p.Memory[1]), begin: C.uint64_t(p.Begin),
	}
	return wrap(op, C.mlxg_product_into(c, h.ptr(), h.n()), inputs...)
}

func scaleRows(a, factors, classes *Array) *Array {
	const op = "ScaleRows"
	inputs := []*Array{a}
	for _, perRow := range []*Array{factors, classes} {
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
