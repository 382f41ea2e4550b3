package mlxc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestIsReady(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2})
	require.True(t, x.IsReady())
	y := x.Square()
	z := y.Sum()
	require.False(t, y.IsReady())
	require.NoError(t, mlxc.Eval(z))
	require.True(t, z.IsReady())
	require.True(t, y.IsReady(), "y was computed as the operand of z")
	w := x.Add(x)
	require.NoError(t, mlxc.AsyncEval(w))
	require.Equal(t, []float32{2, 4}, floats(t, w))
	require.True(t, w.IsReady())

	require.False(t, x.Add(mlxc.Ones(mlxc.Float32, 3)).IsReady())
	x.Free()
	require.False(t, x.IsReady())
	require.False(t, (*mlxc.Array)(nil).IsReady())
}

func TestIsReadyForPlaceholders(t *testing.T) {
	x, y := mlxc.FromSlice([]float32{1, 2}), mlxc.FromSlice([]float32{3, 4})
	pending := x.Add(y)
	requireReady := func(want ...bool) mlxc.Func {
		return func(a arrays) arrays {
			for i, w := range want {
				require.Equal(t, w, a[i].IsReady(), i)
			}
			require.False(t, a[0].Square().IsReady())
			require.True(t, y.IsReady(), "captured")
			return arrays{a[0].Mul(a[1]).Sum()}
		}
	}
	_, grads, err := mlxc.VJP(requireReady(true, false), arrays{x, pending}, arrays{mlxc.Scalar[float32](1)})
	require.NoError(t, err)
	require.Equal(t, []float32{4, 6}, floats(t, grads[0]))
	_, _, err = mlxc.ValueAndGrad(requireReady(true, true), 0)(arrays{x, y})
	require.NoError(t, err)
	_, err = mlxc.Compile(requireReady(false, false)).Call(x, y)
	require.NoError(t, err)
	require.NoError(t, mlxc.Vmap(requireReady(false, true), []int{0, mlxc.Unmapped}, nil)(arrays{x, y})[0].Err())
}

// Reading a computed array does not wait for other work on its stream.
func TestReadingDoesNotQueue(t *testing.T) {
	testdevice.CPUOnly(t, "a GPU queues all operations before it finishes the first, and keeps their inputs until then")
	x := mlxc.FromSlice([]int32{1, 2, 3, 4, 5, 6}, 2, 3)
	transposed := x.Transpose()
	require.NoError(t, mlxc.Eval(transposed))
	busy := mlxc.RandomNormal(mlxc.RandomKey(1), mlxc.Float32, 600, 600)
	busy = busy.MatMul(busy)
	require.NoError(t, mlxc.AsyncEval(busy))
	read, err := mlxc.ToSlice[int32](x)
	require.NoError(t, err)
	require.False(t, busy.IsReady(), "the read waited")
	require.Equal(t, []int32{1, 2, 3, 4, 5, 6}, read)

	var inside []int32
	_, _, err = mlxc.VJP(func(a arrays) arrays {
		inside, err = mlxc.ToSlice[int32](a[1])
		require.NoError(t, err)
		return a[:1]
	}, arrays{mlxc.Scalar[float32](1), x}, arrays{mlxc.Scalar[float32](1)})
	require.NoError(t, err)
	require.False(t, busy.IsReady(), "the read of the placeholder waited")
	require.Equal(t, read, inside)

	read, err = mlxc.ToSlice[int32](transposed) // not in row-major order
	require.NoError(t, err)
	require.Equal(t, []int32{1, 4, 2, 5, 3, 6}, read)
}

func TestIsHostBacked(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2})
	require.True(t, x.IsHostBacked())
	require.True(t, mlxc.Scalar[int32](1).IsHostBacked())
	y := x.Square()
	require.NoError(t, mlxc.Eval(y))
	require.False(t, y.IsHostBacked())
	require.False(t, (*mlxc.Array)(nil).IsHostBacked())
}

// MLX marks a failed array as evaluated. In this package, every later use of the array returns the error.
func TestFailedEvaluationStaysFailed(t *testing.T) {
	// GPUs have no inverse.
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() { testFailedEvaluationStaysFailed(t) }))
}

func testFailedEvaluationStaysFailed(t *testing.T) {
	singular := mlxc.Zeros(mlxc.Float32, 2, 2).Inv()
	require.ErrorContains(t, mlxc.Eval(singular), "LU factorization failed")
	require.ErrorContains(t, mlxc.Eval(singular), "LU factorization failed")
	_, err := mlxc.ToSlice[float32](singular)
	require.ErrorContains(t, err, "LU factorization failed")
	_, err = mlxc.ToSlice[float32](singular.AddScalar(1))
	require.ErrorContains(t, err, "LU factorization failed")
	// An array that was computed before the call stays valid.
	one := mlxc.Ones(mlxc.Float32, 1)
	require.NoError(t, mlxc.Eval(one))
	require.Error(t, mlxc.Eval(one, mlxc.Zeros(mlxc.Float32, 3, 3).Inv()))
	require.Equal(t, []float32{1}, floats(t, one))
}
