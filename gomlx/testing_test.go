package gomlx

import (
	"reflect"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/stretchr/testify/require"
)

// array is an array in Go: a flat slice and its dimensions.
type array struct {
	flat any
	dims []int
}

func of[T any](flat []T, dims ...int) array { return array{flat, dims} }

func (a array) shape() shapes.Shape {
	return shapes.Make(dtypes.FromGoType(reflect.TypeOf(a.flat).Elem()), a.dims...)
}

type buildFunc func(f backends.Function, in []backends.Value) ([]backends.Value, error)

// one makes a buildFunc of an operation with one result.
func one(build func(f backends.Function, in []backends.Value) (backends.Value, error)) buildFunc {
	return func(f backends.Function, in []backends.Value) ([]backends.Value, error) {
		out, err := build(f, in)
		return []backends.Value{out}, err
	}
}

func newBackend(t testing.TB) backends.Backend {
	t.Helper()
	b, err := New("cpu")
	require.NoError(t, err)
	return b
}

// compile returns an executable of a function of the inputs.
func compile(t testing.TB, b backends.Backend, build buildFunc, inputs ...array) backends.Executable {
	t.Helper()
	builder := b.Builder("test")
	f := builder.Main()
	params := make([]backends.Value, len(inputs))
	var err error
	for i, in := range inputs {
		params[i], err = f.Parameter("", in.shape(), nil)
		require.NoError(t, err)
	}
	out, err := build(f, params)
	require.NoError(t, err)
	require.NoError(t, f.Return(out, nil))
	e, err := builder.Compile()
	require.NoError(t, err)
	return e
}

func buffers(t testing.TB, b backends.Backend, inputs ...array) []backends.Buffer {
	t.Helper()
	out := make([]backends.Buffer, len(inputs))
	for i, in := range inputs {
		var err error
		out[i], err = b.BufferFromFlatData(0, in.flat, in.shape())
		require.NoError(t, err)
	}
	return out
}

// read returns the elements of buffers and finalizes the buffers.
func read(t testing.TB, b backends.Backend, buffers []backends.Buffer) []any {
	t.Helper()
	out := make([]any, len(buffers))
	for i, buf := range buffers {
		s, err := b.BufferShape(buf)
		require.NoError(t, err)
		n := s.Size()
		if s.DType.IsPacked() {
			n = s.DType.SizeForDimensions(s.Dimensions...)
		}
		out[i] = reflect.MakeSlice(reflect.SliceOf(s.DType.GoType()), n, n).Interface()
		require.NoError(t, b.BufferToFlatData(buf, out[i]))
		require.NoError(t, b.BufferFinalize(buf))
	}
	return out
}

// compute executes a function of the inputs once and returns its results.
func compute(t testing.TB, build buildFunc, inputs ...array) []any {
	t.Helper()
	b := newBackend(t)
	e := compile(t, b, build, inputs...)
	defer e.Finalize()
	in := buffers(t, b, inputs...)
	out, err := e.Execute(in, nil, 0)
	require.NoError(t, err)
	for _, buf := range in {
		require.NoError(t, b.BufferFinalize(buf))
	}
	return read(t, b, out)
}
