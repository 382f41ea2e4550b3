package mlxc_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

func TestArithmetic(t *testing.T) {
	a := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	b := mlxc.FromSlice([]float32{10, 20})
	got, err := mlxc.ToSlice[float32](a.Mul(a).Add(b).Sub(a).Neg())
	require.NoError(t, err)
	require.Equal(t, []float32{-10, -22, -16, -32}, got)
	require.Equal(t, []int{2, 2}, a.Shape())
	require.Equal(t, "array([[1, 2],\n       [3, 4]], dtype=float32)", a.String())
}

func TestVJPOfSquare(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2, 3})
	outs, grads, err := mlxc.VJP(func(args []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{args[0].Square()}
	}, []*mlxc.Array{x}, []*mlxc.Array{mlxc.FromSlice([]float32{1, 10, 100})})
	require.NoError(t, err)
	require.Len(t, outs, 1)
	got, err := mlxc.ToSlice[float32](grads[0])
	require.NoError(t, err)
	require.Equal(t, []float32{2, 40, 600}, got)
}

func roundTrip[T mlxc.Element](t *testing.T, values ...T) {
	t.Helper()
	a := mlxc.FromSlice(values)
	require.NoError(t, a.Err())
	got, err := mlxc.ToSlice[T](a)
	require.NoError(t, err)
	require.Equal(t, values, got)
	got, err = mlxc.ToSlice[T](a.Reshape(1, -1).Transpose())
	require.NoError(t, err)
	require.Equal(t, values, got)
	one, err := mlxc.Item[T](mlxc.Scalar(values[0]))
	require.NoError(t, err)
	require.Equal(t, values[0], one)
	empty, err := mlxc.ToSlice[T](mlxc.FromSlice([]T{}, 0, 3))
	require.NoError(t, err)
	require.Empty(t, empty)
}

func TestEveryDTypeRoundTrips(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	roundTrip(t, true, false)
	roundTrip[uint8](t, 0, 255)
	roundTrip[uint16](t, 0, 65535)
	roundTrip[uint32](t, 0, 1<<32-1)
	roundTrip[uint64](t, 0, 1<<64-1)
	roundTrip[int8](t, -128, 127)
	roundTrip[int16](t, -32768, 32767)
	roundTrip[int32](t, -1<<31, 1<<31-1)
	roundTrip[int64](t, -1<<63, 1<<63-1)
	roundTrip(t, float16.Fromfloat32(1.5), float16.Fromfloat32(-65504))
	roundTrip[float32](t, 1.5, -3e38)
	roundTrip[float64](t, 1.5, -1e300)
	roundTrip(t, bfloat16.FromFloat32(1.5), bfloat16.FromFloat32(-3e38))
	roundTrip[complex64](t, 1+2i, -3i)
}
