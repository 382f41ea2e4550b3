package ops

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// The products are those of MLX in float32, rounded once, for both layouts of both operands.
func TestMatrixProducts(t *testing.T) {
	for _, c := range [][3]int{{1, 1, 1}, {3, 40, 9}, {65, 31, 129}, {130, 257, 33}} {
		for i, dtype := range gradientDTypes {
			for layout := range 4 {
				if !inSample(i+layout, dtype) {
					continue
				}
				a := randomMatrix(1, dtype, c[0], c[1], layout&1 != 0)
				b := randomMatrix(2, dtype, c[1], c[2], layout&2 != 0)
				want := a.mlx().AsType(mlxc.Float32).MatMul(b.mlx().AsType(mlxc.Float32)).AsType(dtype)
				t.Run(fmt.Sprintf("%v/%v/%d", dtype, c, layout), func(t *testing.T) {
					closeTo(t, want, matrixProduct(target{backend: mlxc.BackendCPU}, a, b))
				})
			}
		}
	}
}

func TestMatMulByHand(t *testing.T) {
	a, b := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 1, 2), mlxc.FromSlice([]float32{5, 6, 7, 8}, 2, 2)
	y := MatMul(a, b)
	require.Equal(t, []int{2, 1, 2}, y.Shape())
	require.Equal(t, []float32{19, 22, 43, 50}, mlxtest.Floats(t, y))

	ones := mlxc.Ones(mlxc.Float32, 2, 1, 2)
	_, grads, err := mlxc.VJP(matMul, arrays{a, b}, arrays{ones})
	require.NoError(t, err)
	require.Equal(t, []int{2, 1, 2}, grads[0].Shape())
	require.Equal(t, []float32{11, 15, 11, 15}, mlxtest.Floats(t, grads[0]))
	require.Equal(t, []float32{4, 4, 6, 6}, mlxtest.Floats(t, grads[1]))
}

// The gradient of a product without terms is 0, as the product is.
func TestMatMulWithoutElements(t *testing.T) {
	for _, s := range [][3]int{{0, 3, 2}, {3, 0, 2}, {3, 2, 0}} {
		a, b := mlxc.Ones(mlxc.Float32, s[0], s[1]), mlxc.Ones(mlxc.Float32, s[1], s[2])
		y, grads, err := mlxc.VJP(matMul, arrays{a, b}, arrays{mlxc.Ones(mlxc.Float32, s[0], s[2])})
		require.NoError(t, err)
		for i, x := range []*mlxc.Array{y[0], grads[0], grads[1]} {
			require.Equal(t, [][]int{{s[0], s[2]}, {s[0], s[1]}, {s[1], s[2]}}[i], x.Shape())
			for _, v := range mlxtest.Floats(t, x) {
				require.Zero(t, v)
			}
		}
	}
}

func TestMatMulRefuses(t *testing.T) {
	x := mlxc.Ones(mlxc.Float32, 2, 3)
	for _, c := range []struct {
		a, b *mlxc.Array
		want string
	}{
		{nil, x, "ops.MatMul float32(2,3): a: the array is nil"},
		{x, nil, "ops.MatMul float32(2,3): b: the array is nil"},
		{mlxc.Scalar[float32](1), x, "a is a scalar; it must have at least one axis"},
		{x.AsType(mlxc.Int32), x, "a is int32; it must be float32, float16 or bfloat16"},
		{x, x, "b has shape [2 3]; it must be [3, columns]: one row for each column of a, which has shape [2 3]"},
		{x, mlxc.Ones(mlxc.Float32, 3), "b has shape [3]; it must be [3, columns]"},
		{x, mlxc.Ones(mlxc.Float16, 3, 2), "a is float32 and b is float16; they must be equal"},
	} {
		require.ErrorContains(t, MatMul(c.a, c.b).Err(), c.want)
	}
}
