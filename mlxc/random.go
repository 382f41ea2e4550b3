package mlxc

/*
#include "mlxg.h"

#ifndef MLXG_NOT_SET_UP
static mlxg_result random_key(uint64_t seed) {
  MLXG_CALL(mlx_random_key(&res, seed));
}
static mlxg_result random_normal(const int* shape, size_t n, int dtype, void* key) {
  MLXG_CALL(mlx_random_normal(&res, shape, n, (mlx_dtype)dtype, 0, 1, (mlx_array){key}, mlxg_stream()));
}
static mlxg_result random_uniform(void* low, void* high, const int* shape, size_t n, int dtype, void* key) {
  MLXG_CALL(mlx_random_uniform(&res, (mlx_array){low}, (mlx_array){high}, shape, n, (mlx_dtype)dtype, (mlx_array){key}, mlxg_stream()));
}
#endif
*/
import "C"

// RandomKey makes a key of MLX's counter-based generator. The same key gives the
// same numbers, on every device.
func RandomKey(seed uint64) *Array {
	if initError != nil {
		return invalid(&Error{Op: "random_key", Err: initError})
	}
	return wrap("random_key", C.random_key(C.uint64_t(seed)))
}

// RandomNormal draws from the standard normal distribution. d is a floating-point
// dtype.
func RandomNormal(key *Array, d DType, shape ...int) *Array {
	const op = "random_normal"
	ctx, err := key.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, key))
	}
	defer key.release()
	if err := checkNew(d, shape); err != nil {
		return invalid(&Error{Op: op, Err: err})
	}
	c := cShape(shape)
	return wrap(op, C.random_normal(&c[0], C.size_t(len(shape)), C.int(d.c()), ctx))
}

// RandomUniform draws from the interval [low, high). d is a floating-point dtype.
func RandomUniform(key *Array, low, high float32, d DType, shape ...int) *Array {
	const op = "random_uniform"
	l, h := Scalar(low), Scalar(high)
	defer l.Free()
	defer h.Free()
	all, err := acquireAll(op, []*Array{l, h, key})
	if err != nil {
		return invalid(err)
	}
	defer all.release()
	if err := checkNew(d, shape); err != nil {
		return invalid(&Error{Op: op, Err: err})
	}
	c := cShape(shape)
	return wrap(op, C.random_uniform(all.ctx[0], all.ctx[1], &c[0], C.size_t(len(shape)), C.int(d.c()), all.ctx[2]))
}
