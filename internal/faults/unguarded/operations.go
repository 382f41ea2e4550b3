//go:build mlxheaders

package unguarded

// #include "mlx/c/mlx.h"
import "C"

// AsType converts to dtype d.
func (a Array) AsType(d DType) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_astype(r, a.c, C.mlx_dtype(d), stream)
	})
}

// View reinterprets the bytes as dtype d.
func (a Array) View(d DType) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_view(r, a.c, C.mlx_dtype(d), stream)
	})
}

// Add returns a + b.
func (a Array) Add(b Array) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_add(r, a.c, b.c, stream)
	})
}

// Mul returns a · b.
func (a Array) Mul(b Array) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_multiply(r, a.c, b.c, stream)
	})
}

// FloorDivide returns ⌊a / b⌋.
func (a Array) FloorDivide(b Array) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_floor_divide(r, a.c, b.c, stream)
	})
}

// NotEqual compares a and b.
func (a Array) NotEqual(b Array) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_not_equal(r, a.c, b.c, stream)
	})
}

// Power returns a to the power b.
func (a Array) Power(b Array) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_power(r, a.c, b.c, stream)
	})
}

// Sqrt returns √a.
func (a Array) Sqrt() Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_sqrt(r, a.c, stream)
	})
}

// Sign returns a / |a|.
func (a Array) Sign() Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_sign(r, a.c, stream)
	})
}

// Sum adds along an axis.
func (a Array) Sum(axis int) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_sum_axis(r, a.c, C.int(axis), false, stream)
	})
}

// Prod multiplies all elements.
func (a Array) Prod() Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_prod(r, a.c, false, stream)
	})
}

// LogSumExp returns ln Σ eᵃ along an axis.
func (a Array) LogSumExp(axis int) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_logsumexp_axis(r, a.c, C.int(axis), false, stream)
	})
}

// Softmax returns the softmax along an axis.
func (a Array) Softmax(axis int) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_softmax_axis(r, a.c, C.int(axis), false, stream)
	})
}

// LogCumSumExp returns the running ln Σ eᵃ of a vector.
func (a Array) LogCumSumExp() Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_logcumsumexp(r, a.c, false, true, stream)
	})
}

// CumSum returns running sums along an axis.
func (a Array) CumSum(axis int) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_cumsum_axis(r, a.c, C.int(axis), false, true, C.mlx_optional_dtype{}, stream)
	})
}

// CumMax returns the running maxima of a vector.
func (a Array) CumMax(inclusive bool) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_cummax(r, a.c, false, C.bool(inclusive), stream)
	})
}

// Sort sorts along an axis.
func (a Array) Sort(axis int) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_sort_axis(r, a.c, C.int(axis), stream)
	})
}

// ArgPartition returns positions that partition a vector.
func (a Array) ArgPartition(kth int) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_argpartition_axis(r, a.c, C.int(kth), 0, stream)
	})
}

// Take returns the elements at ids of a vector.
func (a Array) Take(ids Array) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_take(r, a.c, ids.c, stream)
	})
}

// BroadcastTo broadcasts to a shape.
func (a Array) BroadcastTo(shape ...int) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_broadcast_to(r, a.c, ints(shape).ptr(), ints(shape).n(), stream)
	})
}

// Reshape changes the shape.
func (a Array) Reshape(shape ...int) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_reshape(r, a.c, ints(shape).ptr(), ints(shape).n(), stream)
	})
}

// Unflatten splits an axis.
func (a Array) Unflatten(axis int, shape ...int) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_unflatten(r, a.c, C.int(axis), ints(shape).ptr(), ints(shape).n(), stream)
	})
}

// ExpandDims adds axes of size 1.
func (a Array) ExpandDims(axes ...int) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_expand_dims_axes(r, a.c, ints(axes).ptr(), ints(axes).n(), stream)
	})
}

// Transpose reverses the axes.
func (a Array) Transpose() Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_transpose(r, a.c, stream)
	})
}

// Diagonal returns diagonal k of the first two axes.
func (a Array) Diagonal(k int) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_diagonal(r, a.c, C.int(k), 0, 1, stream)
	})
}

// Tril keeps the elements up to diagonal k.
func (a Array) Tril(k int) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_tril(r, a.c, C.int(k), stream)
	})
}

// ToFP8 converts to 8-bit floating-point numbers.
func (a Array) ToFP8() Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_to_fp8(r, a.c, stream)
	})
}

// FromFP8 converts 8-bit floating-point numbers to float32.
func (a Array) FromFP8() Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_from_fp8(r, a.c, C.MLX_FLOAT32, stream)
	})
}

// MatMul returns the matrix product.
func (a Array) MatMul(b Array) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_matmul(r, a.c, b.c, stream)
	})
}

// AddMM returns alpha·x·y + beta·a.
func (a Array) AddMM(x, y Array, alpha, beta float32) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_addmm(r, a.c, x.c, y.c, C.float(alpha), C.float(beta), stream)
	})
}

// SegmentedMM multiplies segments of matrices.
func (a Array) SegmentedMM(b, segments Array) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_segmented_mm(r, a.c, b.c, segments.c, stream)
	})
}

// GatherMM multiplies with the matrices that ids select.
func (a Array) GatherMM(b, ids Array, sorted bool) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_gather_mm(r, a.c, b.c, C.mlx_array{}, ids.c, C.bool(sorted), stream)
	})
}

// BlockMaskedMM returns the product of matrices with a mask for its blocks of 32×32.
func (a Array) BlockMaskedMM(b, mask Array) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_block_masked_mm(r, a.c, b.c, 32, mask.c, C.mlx_array{}, C.mlx_array{}, stream)
	})
}

// Conv1D convolves along one axis. The elements of a are `dilation` apart.
func (a Array) Conv1D(weight Array, low, high, dilation int) Array {
	one32, lo, hi, apart := C.int(1), C.int(low), C.int(high), C.int(dilation)
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_conv_general(r, a.c, weight.c, &one32, 1, &lo, 1, &hi, 1, &one32, 1, &apart, 1, 1, false, stream)
	})
}

// Inverse returns the inverse matrix.
func (a Array) Inverse() Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_linalg_inv(r, a.c, stream)
	})
}

// MaskedScatter replaces the elements under the mask.
func (a Array) MaskedScatter(mask, source Array) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_masked_scatter(r, a.c, mask.c, source.c, stream)
	})
}

// SliceUpdateDynamic replaces a window of a vector.
func (a Array) SliceUpdateDynamic(update, start Array) Array {
	return one(func(r *C.mlx_array) C.int {
		return C.mlx_slice_update_dynamic(r, a.c, update.c, start.c, ints([]int{0}).ptr(), 1, stream)
	})
}

// Contiguous returns the elements in row-major order.
func (a Array) Contiguous() Array {
	return one(func(r *C.mlx_array) C.int { return C.mlx_contiguous(r, a.c, false, stream) })
}
