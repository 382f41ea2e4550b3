//go:build mlxheaders

package unguarded

/*
#include <stdlib.h>

#include "mlx/c/mlx.h"
*/
import "C"

import "unsafe"

// Slice returns the elements start, start+stride, … before stop of a vector.
func (a Array) Slice(start, stop, stride int) Array {
	from, to, by := C.int(start), C.int(stop), C.int(stride)
	return one(func(r *C.mlx_array) C.int { return C.mlx_slice(r, a.c, &from, 1, &to, 1, &by, 1, stream) })
}

// SliceUpdate replaces the elements start … stop−1 of a vector.
func (a Array) SliceUpdate(update Array, start, stop int) Array {
	from, to, by := C.int(start), C.int(stop), C.int(1)
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_slice_update(r, a.c, update.c, &from, 1, &to, 1, &by, 1, stream)
	})
}

// EverySecondColumn returns the columns 0, 2, … of a matrix, as a view.
func (a Array) EverySecondColumn() Array {
	shape := a.Shape()
	start, by := ints([]int{0, 0}), ints([]int{1, 2})
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_slice(r, a.c, start.ptr(), 2, ints(shape).ptr(), 2, by.ptr(), 2, stream)
	})
}

// AsStrided returns two neighboring elements from position offset on, as a view.
func (a Array) AsStrided(offset int) Array {
	shape, stride := C.int(2), C.int64_t(1)
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_as_strided(r, a.c, &shape, 1, &stride, 1, C.size_t(offset), stream)
	})
}

// Split splits a vector into two equal parts.
func (a Array) Split() []Array {
	return list(func(r *C.mlx_vector_array) C.int { return C.mlx_split(r, a.c, 2, 0, stream) })
}

// Depends returns a, whose evaluation also evaluates b.
func (a Array) Depends(b Array) Array {
	return list(func(r *C.mlx_vector_array) C.int {
		return C.mlx_depends(r, vector([]Array{a}), vector([]Array{b}))
	})[0]
}

// ScatterMax returns a vector with the maxima of its elements and the updates at ids.
func (a Array) ScatterMax(ids, updates Array) Array {
	axis := C.int(0)
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_scatter_max(r, a.c, vector([]Array{ids}), updates.c, &axis, 1, stream)
	})
}

// TriInv returns the inverse of the lower triangle.
func (a Array) TriInv() Array {
	return one(func(r *C.mlx_array) C.int { return C.mlx_linalg_tri_inv(r, a.c, false, stream) })
}

// LUFactor returns the factors of a matrix in one array.
func (a Array) LUFactor() Array {
	pivots := C.mlx_array_new()
	return one(func(r *C.mlx_array) C.int { return C.mlx_linalg_lu_factor(r, &pivots, a.c, stream) })
}

// Pad adds one element of the value at each end of a vector.
func (a Array) Pad(value Array) Array {
	axis, n, mode := C.int(0), C.int(1), C.CString("constant")
	defer C.free(unsafe.Pointer(mode))
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_pad(r, a.c, &axis, 1, &n, 1, &n, 1, value.c, mode, stream)
	})
}

// RoPE rotates pairs of the last axis. Positions start at offset, or at 0 if it is the zero Array.
func (a Array) RoPE(dims int, traditional bool, offset Array) Array {
	base := C.mlx_optional_float{value: 10000, has_value: true}
	return one(func(r *C.mlx_array) C.int {
		if offset.c.ctx == nil {
			return C.mlx_fast_rope(r, a.c, C.int(dims), C.bool(traditional), base, 1, 0, C.mlx_array{}, stream)
		}
		return C.mlx_fast_rope_dynamic(r, a.c, C.int(dims), C.bool(traditional), base, 1, offset.c, C.mlx_array{}, stream)
	})
}

// GroupedConv1D convolves with two groups of channels.
func (a Array) GroupedConv1D(weight Array) Array {
	return one(func(r *C.mlx_array) C.int { return C.mlx_conv1d(r, a.c, weight.c, 1, 0, 1, 2, stream) })
}

// Attention returns the attention with the keys as values.
func (a Array) Attention(keys Array) Array {
	mode := C.CString("")
	defer C.free(unsafe.Pointer(mode))
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_fast_scaled_dot_product_attention(r, a.c, keys.c, keys.c, 1, mode, C.mlx_array{}, C.mlx_array{}, false, stream)
	})
}

// Permutation returns a random permutation of 0 … n−1.
func Permutation(n int) Array {
	return one(func(r *C.mlx_array) C.int { return C.mlx_random_permutation_arange(r, C.int(n), C.mlx_array{}, stream) })
}

var (
	group  = C.mlx_optional_int{value: 64, has_value: true}
	bits   = C.mlx_optional_int{value: 8, has_value: true}
	affine = C.CString("affine")
)

// Quantize returns the elements in groups of 64 with 8 bits, their scales and biases.
func (a Array) Quantize() (weight, scales, biases Array) {
	q := list(func(r *C.mlx_vector_array) C.int {
		return C.mlx_quantize(r, a.c, group, bits, affine, C.mlx_array{}, stream)
	})
	return q[0], q[1], q[2]
}

// QuantizedMatMul returns the product with the transposed result of Quantize.
func (a Array) QuantizedMatMul(weight, scales, biases Array) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_quantized_matmul(r, a.c, weight.c, scales.c, biases.c, true, group, bits, affine, stream)
	})
}

// GatherQMM returns the products with the matrices of Quantize that ids select.
func (a Array) GatherQMM(weight, scales, biases, ids Array) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_gather_qmm(r, a.c, weight.c, scales.c, biases.c, C.mlx_array{}, ids.c, false, group, bits, affine, false,
			stream)
	})
}

// Load reads a .npy file.
func Load(path string) Array {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	return one(func(r *C.mlx_array) C.int { return C.mlx_load(r, p, stream) })
}

// LoadGGUF reads the tensor "a" of a GGUF file.
func LoadGGUF(path string) Array {
	p, key := C.CString(path), C.CString("a")
	defer C.free(unsafe.Pointer(p))
	defer C.free(unsafe.Pointer(key))
	g := C.mlx_io_gguf_new()
	check(C.mlx_load_gguf(&g, p, stream))
	return one(func(r *C.mlx_array) C.int { return C.mlx_io_gguf_get_array(r, g, key) })
}
