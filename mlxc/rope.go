package mlxc

/*
#include "mlxg.h"

#ifndef MLXG_NOT_SET_UP
static mlxg_result rope(void* x, int dims, bool traditional, bool has_base, float base, float scale, int offset, void* freqs) {
  mlx_optional_float b = {.value = base, .has_value = has_base};
  MLXG_CALL(mlx_fast_rope(&res, (mlx_array){x}, dims, traditional, b, scale, offset, (mlx_array){freqs}, mlxg_stream()));
}
#endif
*/
import "C"

import "fmt"

// RoPEConfig says how RoPE rotates. The zero value rotates all dimensions, in halves,
// with the base 10000, from position 0.
type RoPEConfig struct {
	Dims        int     // the first dimensions, which are rotated, an even number; 0 stands for all
	Traditional bool    // pairs of neighbours, instead of pairs from the two halves
	Base        float32 // of the frequencies, positive; 0 stands for 10000
	Scale       float32 // of the positions; 0 stands for 1
	Offset      int     // the position of the first row
	// Freqs, of shape (Dims/2), are the reciprocals of the frequencies, instead of those
	// of Base; nil for these. They have no gradient.
	Freqs *Array
}

// RoPE is MLX's fast rotary position embedding (Su et al., "RoFormer", 2021, section
// 3.2.2). x has the shape (batch,…,length,head_dim), with three axes at least, and is
// floating-point. The row at position p is rotated by the angle p·Baseᵒ, o = −2i/Dims, in
// the plane of its elements i and i+Dims/2, or with Traditional 2i and 2i+1, for each i
// below Dims/2; the other elements stay. The result has x's shape and dtype. Its
// gradient is MLX's own.
func RoPE(x *Array, c RoPEConfig) *Array {
	const op = "RoPE"
	cx, err := x.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, x))
	}
	defer x.release()
	freqs, done, err := optional(op, c.Freqs)
	if err != nil {
		return invalid(err)
	}
	defer done()
	if c.Dims == 0 {
		c.Dims = x.Dim(-1)
	}
	if c.Base == 0 {
		c.Base = 10000
	}
	if c.Scale == 0 {
		c.Scale = 1
	}
	if c.Dims == 2 {
		// Both ways there is one pair, the same. MLX's gradient is wrong the traditional
		// way: that of a slice with a stride, of one element.
		c.Traditional = false
	}
	ints, err := cInts([]int{c.Dims, c.Offset})
	switch {
	case err != nil:
	case !(c.Base > 0):
		err = fmt.Errorf("the base is %v: it must be positive", c.Base)
	case c.Dims < 0: // before MLX, which counts in other types
		err = fmt.Errorf("%d dimensions cannot be rotated", c.Dims)
	}
	if err != nil {
		return invalid(opError(op, err, x, c.Freqs))
	}
	return wrap(op, C.rope(cx, ints[0], C.bool(c.Traditional), C.bool(c.Freqs == nil), C.float(c.Base), C.float(c.Scale), ints[1], freqs), x, c.Freqs).orNothing()
}
