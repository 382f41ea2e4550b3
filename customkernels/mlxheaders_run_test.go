package customkernels

import (
	"context"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/host"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// headerLaunch is a launch of one of MLX's kernels. The arguments are the kernel's, in the order
// of their numbers: a number of the C type that the kernel declares, a slice, an array,
// a result, or
// nil where the kernel has no such number or a function constant removes the argument.
type headerLaunch struct {
	grid, threadgroup [3]int
	arguments         []any
	check             func(t testing.TB, results arrays)
}

// result is an argument that the kernel writes.
type result struct {
	dtype mlxc.DType
	shape []int
	zero  bool // it starts as zeros, which the kernel adds to
}

// compileHeader turns MLX's text into a library of the host executor.
func compileHeader(text string) (*host.Library, error) {
	source, err := msl.Host(text)
	if err != nil {
		return nil, err
	}
	// MLX's own utils.h stands in for the prelude of custom kernels, which has the same names.
	return host.Compile(context.Background(), "#define MLXG_NO_MLX_PRELUDE\n"+source.Source)
}

// run launches the kernel and checks its results.
func (l headerLaunch) run(t testing.TB, library *host.Library) {
	t.Helper()
	var buffers []host.Buffer
	var results []func() *mlxc.Array
	for _, a := range l.arguments {
		var bytes []byte
		shape := []int{1}
		switch a := a.(type) {
		case *mlxc.Array:
			bytes, shape = bytesOf(t, a), a.Shape()
		case result:
			shape = a.shape
			bytes = make([]byte, product(shape)*a.dtype.Size())
			for i := range bytes {
				if a.zero {
					break
				}
				bytes[i] = 0xff // not a number, where the kernel leaves it
			}
		case []int32:
			bytes = rawBytes(a)
		case []int64:
			bytes = rawBytes(a)
		default:
			bytes = scalarBytes(t, a)
		}
		// A wide load of the last elements may pass the end, as it may on a GPU.
		memory := make([]uint64, len(bytes)/8+2)
		data := unsafe.Pointer(&memory[0])
		copy(unsafe.Slice((*byte)(data), len(bytes)), bytes)
		buffers = append(buffers, host.Buffer{Data: data, Shape: shape})
		if r, ok := a.(result); ok {
			results = append(results, func() *mlxc.Array {
				return arrayOf(t, r, unsafe.Slice((*byte)(data), len(bytes)))
			})
		}
	}
	require.Equal(t, library.Buffers(), len(buffers), "arguments of the kernel")
	// All are inputs to the executor, which does not ask what a kernel writes.
	require.NoError(t, library.Run(l.grid, l.threadgroup, make([]host.Metadata, len(buffers)), buffers, nil))
	var arrays arrays
	for _, r := range results {
		arrays = append(arrays, r())
	}
	l.check(t, arrays)
}

func rawBytes[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

func scalarBytes(t testing.TB, a any) []byte {
	t.Helper()
	switch a := a.(type) {
	case bool:
		return rawBytes([]bool{a})
	case nil:
		return nil // no buffer has this number
	case int32:
		return rawBytes([]int32{a})
	case uint32:
		return rawBytes([]uint32{a})
	case int64:
		return rawBytes([]int64{a})
	case uint64:
		return rawBytes([]uint64{a})
	case float32:
		return rawBytes([]float32{a})
	}
	require.FailNow(t, "argument", "no buffer for a %T", a)
	return nil
}

// bytesOf is an array's elements as they lie in memory.
func bytesOf(t testing.TB, a *mlxc.Array) []byte {
	t.Helper()
	switch a.DType() {
	case mlxc.Float32:
		return elementBytes[float32](t, a)
	case mlxc.Float16:
		return elementBytes[float16.Float16](t, a)
	case mlxc.BFloat16:
		return elementBytes[bfloat16.BFloat16](t, a)
	case mlxc.Int32:
		return elementBytes[int32](t, a)
	case mlxc.Uint32:
		return elementBytes[uint32](t, a)
	case mlxc.Bool:
		return elementBytes[bool](t, a)
	}
	require.FailNow(t, "argument", "no bytes of %v", a.DType())
	return nil
}

func elementBytes[T mlxc.Element](t testing.TB, a *mlxc.Array) []byte {
	t.Helper()
	v, err := mlxc.ToSlice[T](a)
	require.NoError(t, err)
	return rawBytes(v)
}

// arrayOf makes an array of a result.
func arrayOf(t testing.TB, r result, bytes []byte) *mlxc.Array {
	t.Helper()
	switch r.dtype {
	case mlxc.Float32:
		return fromBytes[float32](bytes, r.shape)
	case mlxc.Float16:
		return fromBytes[float16.Float16](bytes, r.shape)
	case mlxc.BFloat16:
		return fromBytes[bfloat16.BFloat16](bytes, r.shape)
	case mlxc.Int32:
		return fromBytes[int32](bytes, r.shape)
	case mlxc.Uint32:
		return fromBytes[uint32](bytes, r.shape)
	case mlxc.Bool:
		return fromBytes[bool](bytes, r.shape)
	}
	require.FailNow(t, "result", "no array of %v", r.dtype)
	return nil
}

func fromBytes[T mlxc.Element](bytes []byte, shape []int) *mlxc.Array {
	var zero T
	return mlxc.FromSlice(unsafe.Slice((*T)(unsafe.Pointer(&bytes[0])), len(bytes)/int(unsafe.Sizeof(zero))), shape...)
}

// metalType is the name of a dtype in MLX's kernels.
func metalType(d mlxc.DType) string {
	switch d {
	case mlxc.Float32:
		return "float"
	case mlxc.Float16:
		return "half"
	case mlxc.BFloat16:
		return "bfloat16_t"
	case mlxc.Int32:
		return "int32_t"
	case mlxc.Uint32:
		return "uint32_t"
	case mlxc.Bool:
		return "bool"
	}
	panic(fmt.Sprintf("no Metal type for %v", d))
}
