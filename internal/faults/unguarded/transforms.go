//go:build mlxheaders

package unguarded

/*
#include "mlx/c/mlx.h"

int unguardedCall(mlx_vector_array*, mlx_vector_array, void*);
int unguardedCallVJP(mlx_vector_array*, mlx_vector_array, mlx_vector_array, mlx_vector_array, void*);

static mlx_closure new_closure(uintptr_t id) {
  return mlx_closure_new_func_payload((int (*)(mlx_vector_array*, const mlx_vector_array, void*))unguardedCall, (void*)id, NULL);
}
static mlx_closure_custom new_vjp(uintptr_t id) {
  return mlx_closure_custom_new_func_payload(
      (int (*)(mlx_vector_array*, const mlx_vector_array, const mlx_vector_array, const mlx_vector_array, void*))unguardedCallVJP,
      (void*)id, NULL);
}
*/
import "C"

import "unsafe"

// Func is a function that transforms call.
type Func func(args []Array) []Array

// Of returns the Func of a function of one array.
func Of(f func(Array) Array) Func {
	return func(args []Array) []Array { return []Array{f(args[0])} }
}

var functions []Func

//export unguardedCall
func unguardedCall(r *C.mlx_vector_array, args C.mlx_vector_array, id unsafe.Pointer) C.int {
	return call(r, uintptr(id), args)
}

//export unguardedCallVJP
func unguardedCallVJP(
	r *C.mlx_vector_array, primals, cotangents, outputs C.mlx_vector_array, id unsafe.Pointer,
) C.int {
	return call(r, uintptr(id), cotangents)
}

// call stores the results of a function in a vector that mlx-c frees. It frees the arrays that the function made.
func call(r *C.mlx_vector_array, id uintptr, args C.mlx_vector_array) C.int {
	before := made
	made = handles{}
	*r = made.release(functions[id-1](members(args)))
	made = before
	return 0
}

func register(f Func) C.uintptr_t {
	functions = append(functions, f)
	return C.uintptr_t(len(functions))
}

func closure(f Func) C.mlx_closure { return C.new_closure(register(f)) }

func apply(c C.mlx_closure, args []Array) []Array {
	return list(func(r *C.mlx_vector_array) C.int { return C.mlx_closure_apply(r, c, vector(args)) })
}

// VJP returns the cotangents of the primals.
func VJP(f Func, primals, cotangents []Array) []Array {
	outputs := C.mlx_vector_array_new()
	made.vectors = append(made.vectors, outputs)
	return list(func(r *C.mlx_vector_array) C.int {
		return C.mlx_vjp(&outputs, r, closure(f), vector(primals), vector(cotangents))
	})
}

// JVP returns the tangents of the outputs.
func JVP(f Func, primals, tangents []Array) []Array {
	outputs := C.mlx_vector_array_new()
	made.vectors = append(made.vectors, outputs)
	return list(func(r *C.mlx_vector_array) C.int {
		return C.mlx_jvp(&outputs, r, closure(f), vector(primals), vector(tangents))
	})
}

// Vmap maps f along an axis of each argument, as MLX's vmap does, to the first axis of the result.
func Vmap(f Func, axis int) Func {
	return func(args []Array) []Array {
		in, out := C.mlx_vector_array_new(), C.mlx_vector_array_new()
		made.vectors = append(made.vectors, in, out)
		axes := make([]int, len(args))
		for i := range axes {
			axes[i] = axis
		}
		c, first := ints(axes), C.int(0)
		check(C.mlx_detail_vmap_trace(&in, &out, closure(f), vector(args), c.ptr(), c.n()))
		return list(func(r *C.mlx_vector_array) C.int {
			return C.mlx_detail_vmap_replace(r, vector(args), in, out, c.ptr(), c.n(), &first, 1)
		})
	}
}

// WithVJP returns f with a custom gradient: vjp maps the cotangents of the outputs to those of the arguments.
func WithVJP(f, vjp Func) Func {
	c := C.mlx_closure_new()
	check(C.mlx_custom_vjp(&c, closure(f), C.new_vjp(register(vjp))))
	return func(args []Array) []Array { return apply(c, args) }
}

// Compile compiles f, calls it with each list of arguments, and returns the results of the last call.
func Compile(f Func, shapeless bool, calls ...[]Array) (results []Array) {
	plain, c := closure(f), C.mlx_closure_new()
	check(C.mlx_compile(&c, plain, C.bool(shapeless)))
	for _, args := range calls {
		results = apply(c, args)
		Eval(results...)
	}
	C.mlx_closure_free(c)
	C.mlx_closure_free(plain)
	return results
}
