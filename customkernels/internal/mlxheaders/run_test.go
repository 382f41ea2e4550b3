package mlxheaders

import (
	"context"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/executor"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

type arrays = []*mlxc.Array

// A corpus builds the cases. All inputs come from one random source.
type corpus struct{ *mlxtest.Source }

// A headerLaunch is a launch of one of MLX's kernels. arguments is indexed by buffer number. An argument is a number of
// the type that the kernel declares, a slice, an array, or a result. It is nil if the kernel has no such buffer or if a
// function constant removes it.
type headerLaunch struct {
	grid, threadgroup [3]int
	arguments         []any
	check             func(t testing.TB, results arrays)
}

// A result is an argument that the kernel writes.
type result struct {
	dtype mlxc.DType
	shape []int
	zero  bool // initialized to zeros, because the kernel adds to it
}

// compileHeader compiles Metal source for the host executor.
func compileHeader(text string) (*executor.Library, error) {
	source, err := translate.Host(text, translate.Conversions{})
	if err != nil {
		return nil, err
	}
	// MLX's utils.h declares the same names as the prelude of custom kernels, so the prelude is left out.
	return executor.Compile(context.Background(), "#define MLXG_NO_MLX_PRELUDE\n"+source.Source)
}

// run launches the kernel and checks its results.
func (l headerLaunch) run(t testing.TB, library *executor.Library) {
	t.Helper()
	var buffers []executor.Buffer
	var results []func() *mlxc.Array
	for _, a := range l.arguments {
		var bytes []byte
		shape := []int{1}
		switch a := a.(type) {
		case *mlxc.Array:
			bytes = mlxtest.Bytes(t, a)
			shape = a.Shape()
		case result:
			shape = a.shape
			bytes = make([]byte, mlxtest.Size(shape)*a.dtype.Size())
			for i := range bytes {
				if a.zero {
					break
				}
				bytes[i] = 0xff // NaN in every element that the kernel does not write
			}
		case []int32:
			bytes = sliceBytes(a)
		case []int64:
			bytes = sliceBytes(a)
		default:
			bytes = scalarBytes(t, a)
		}
		// Pad the buffer: vector loads of the last elements may read beyond the end, as on a GPU.
		memory := make([]uint64, len(bytes)/8+2)
		data := unsafe.Pointer(&memory[0])
		copy(unsafe.Slice((*byte)(data), len(bytes)), bytes)
		buffers = append(buffers, executor.Buffer{Data: data, Shape: shape})
		if r, ok := a.(result); ok {
			results = append(results, func() *mlxc.Array {
				return mlxtest.FromBytes(unsafe.Slice((*byte)(data), len(bytes)), r.dtype, r.shape)
			})
		}
	}
	require.Equal(t, library.Buffers(), len(buffers), "arguments of the kernel")
	// All buffers are passed as inputs: the executor does not distinguish inputs from outputs.
	require.NoError(t, library.Run(l.grid, l.threadgroup, make([]executor.Metadata, len(buffers)), buffers, nil))
	var arrays arrays
	for _, r := range results {
		arrays = append(arrays, r())
	}
	l.check(t, arrays)
}

func scalarBytes(t testing.TB, a any) []byte {
	t.Helper()
	switch a := a.(type) {
	case bool:
		return sliceBytes([]bool{a})
	case nil:
		return nil // no buffer has this number
	case int32:
		return sliceBytes([]int32{a})
	case uint32:
		return sliceBytes([]uint32{a})
	case int64:
		return sliceBytes([]int64{a})
	case uint64:
		return sliceBytes([]uint64{a})
	case float32:
		return sliceBytes([]float32{a})
	}
	require.FailNow(t, "argument", "no buffer for a %T", a)
	return nil
}

// metalType returns the name of a dtype in MLX's kernels.
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

// sliceBytes returns the memory of a slice. It is never nil.
func sliceBytes[T any](values []T) []byte {
	var zero T
	if len(values) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(zero)))
}
