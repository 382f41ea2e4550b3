//go:build mlxheaders

// Package unguarded calls mlx-c directly, without the guards of package mlxc, so that tests see MLX's faults. It is for
// short processes of one thread: only [FreeAll] frees arrays, and a call may end the process. An error of MLX is a
// panic with an [Error], which [Try] recovers and returns.
package unguarded

/*
#cgo CFLAGS: -I${SRCDIR}/../../../third_party/mlx-c/install/include
#cgo LDFLAGS: -L${SRCDIR}/../../../third_party/mlx-c/install/lib -L${SRCDIR}/../../../third_party/mlx-c/install/mlx/lib -lmlxc -lmlx
#cgo LDFLAGS: -Wl,-rpath,${SRCDIR}/../../../third_party/mlx-c/install/lib -Wl,-rpath,${SRCDIR}/../../../third_party/mlx-c/install/mlx/lib

#include <stdio.h>

#include "mlx/c/mlx.h"

static char message[4096];
static void keep(const char* text, void* data) { (void)data; snprintf(message, sizeof message, "%s", text); }
static void keep_errors(void) { mlx_set_error_handler(keep, NULL, NULL); }
static const char* last_message(void) { return message; }
*/
import "C"

import (
	"runtime"
	"slices"
	"unsafe"
)

// DType is a dtype of MLX.
type DType C.mlx_dtype

// The dtypes of New, and dtypes that only operations return.
const (
	Bool      DType = C.MLX_BOOL
	Uint8     DType = C.MLX_UINT8
	Uint32    DType = C.MLX_UINT32
	Int32     DType = C.MLX_INT32
	Float16   DType = C.MLX_FLOAT16
	Float32   DType = C.MLX_FLOAT32
	Float64   DType = C.MLX_FLOAT64
	BFloat16  DType = C.MLX_BFLOAT16
	Complex64 DType = C.MLX_COMPLEX64
)

// Error is an error of MLX.
type Error string

func (e Error) Error() string { return string(e) }

// Array is an array of MLX. The zero Array stands for an absent operand.
type Array struct{ c C.mlx_array }

var stream C.mlx_stream

func init() {
	runtime.LockOSThread() // MLX binds streams to threads; main runs on the thread of init
	C.keep_errors()
	stream = C.mlx_default_cpu_stream_new()
}

func check(rc C.int) {
	if rc != 0 {
		panic(Error(C.GoString(C.last_message())))
	}
}

// Try calls f and returns the error of MLX that ended it, or nil.
func Try(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case Error:
			err = r
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// Version returns the version of MLX.
func Version() string {
	s := C.mlx_string_new()
	check(C.mlx_version(&s))
	return C.GoString(C.mlx_string_data(s))
}

// New returns an array with a copy of the elements. Without a shape it is a scalar.
func New[T bool | uint8 | uint32 | int32 | float32 | complex64](elements []T, shape ...int) Array {
	var d DType
	switch any(elements).(type) {
	case []bool:
		d = Bool
	case []uint8:
		d = Uint8
	case []uint32:
		d = Uint32
	case []int32:
		d = Int32
	case []float32:
		d = Float32
	case []complex64:
		d = Complex64
	}
	p := unsafe.Pointer(unsafe.SliceData(append(slices.Clip(elements), *new(T)))) // MLX requires an address for empty arrays too
	a := C.mlx_array_new_data(p, ints(shape).ptr(), C.int(len(shape)), C.mlx_dtype(d))
	made.arrays = append(made.arrays, a)
	return Array{a}
}

// Full returns a float32 array with equal elements.
func Full(x float32, shape ...int) Array {
	n := 1
	for _, s := range shape {
		n *= s
	}
	elements := make([]float32, n)
	for i := range elements {
		elements[i] = x
	}
	return New(elements, shape...)
}

// Scalar returns a scalar.
func Scalar[T bool | uint8 | uint32 | int32 | float32 | complex64](x T) Array { return New([]T{x}) }

// Arange returns the numbers 0 … n−1 as float32.
func Arange(n int) Array {
	elements := make([]float32, n)
	for i := range elements {
		elements[i] = float32(i)
	}
	return New(elements, n)
}

// DType returns the array's dtype.
func (a Array) DType() DType { return DType(C.mlx_array_dtype(a.c)) }

// Size returns the number of elements that MLX computed.
func (a Array) Size() uint64 { return uint64(C.mlx_array_size(a.c)) }

// Bytes returns the size of the elements in bytes.
func (a Array) Bytes() int { return int(C.mlx_array_nbytes(a.c)) }

// Shape returns the sizes of the axes.
func (a Array) Shape() []int {
	shape := []int{}
	for _, n := range unsafe.Slice(C.mlx_array_shape(a.c), C.mlx_array_ndim(a.c)) {
		shape = append(shape, int(n))
	}
	return shape
}

// Eval computes arrays.
func Eval(arrays ...Array) { check(C.mlx_eval(vector(arrays))) }

// AsyncEval starts to compute arrays and does not wait.
func AsyncEval(arrays ...Array) { check(C.mlx_async_eval(vector(arrays))) }

// Synchronize waits for the work of the stream.
func Synchronize() { check(C.mlx_synchronize(stream)) }

// ActiveMemory returns the size of all arrays in bytes.
func ActiveMemory() int {
	var n C.size_t
	check(C.mlx_get_active_memory(&n))
	return int(n)
}

// Read returns the elements in row-major order, converted to float32.
func (a Array) Read() []float32 {
	rows := a.AsType(Float32).Contiguous()
	Eval(rows)
	return append([]float32{}, unsafe.Slice((*float32)(C.mlx_array_data_float32(rows.c)), rows.Size())...)
}

// ReadComplex returns the elements of a complex64 array.
func (a Array) ReadComplex() []complex64 {
	rows := a.Contiguous()
	Eval(rows)
	data := unsafe.Pointer(C.mlx_array_data_complex64(rows.c))
	return append([]complex64{}, unsafe.Slice((*complex64)(data), rows.Size())...)
}

type cInts []C.int

func ints(list []int) cInts {
	out := make(cInts, len(list), len(list)+1)
	for i, n := range list {
		out[i] = C.int(n)
	}
	return out
}

func (l cInts) ptr() *C.int { return unsafe.SliceData(l) }

func (l cInts) n() C.size_t { return C.size_t(len(l)) }

// handles are handles of mlx-c to free.
type handles struct {
	arrays  []C.mlx_array
	vectors []C.mlx_vector_array
}

var made handles

func (h *handles) free() {
	for _, v := range h.vectors {
		C.mlx_vector_array_free(v)
	}
	for _, a := range h.arrays {
		C.mlx_array_free(a)
	}
	*h = handles{}
}

// release frees the handles and returns a vector of results, which the caller owns.
func (h *handles) release(results []Array) C.mlx_vector_array {
	v := vector(results)
	h.vectors = h.vectors[:len(h.vectors)-1]
	h.free()
	return v
}

// FreeAll frees all arrays. None may be used afterwards.
func FreeAll() { made.free() }

func vector(arrays []Array) C.mlx_vector_array {
	v := C.mlx_vector_array_new()
	made.vectors = append(made.vectors, v)
	for _, a := range arrays {
		check(C.mlx_vector_array_append_value(v, a.c))
	}
	return v
}

func members(v C.mlx_vector_array) []Array {
	out := make([]Array, C.mlx_vector_array_size(v))
	for i := range out {
		out[i] = one(func(r *C.mlx_array) C.int { return C.mlx_vector_array_get(r, v, C.size_t(i)) })
	}
	return out
}

// one returns the array that f stores.
func one(f func(r *C.mlx_array) C.int) Array {
	r := C.mlx_array_new()
	check(f(&r))
	made.arrays = append(made.arrays, r)
	return Array{r}
}

// list returns the arrays that f stores.
func list(f func(r *C.mlx_vector_array) C.int) []Array {
	r := C.mlx_vector_array_new()
	check(f(&r))
	made.vectors = append(made.vectors, r)
	return members(r)
}
