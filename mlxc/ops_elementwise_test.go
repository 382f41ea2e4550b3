package mlxc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var elementwise = map[string]func(a, b *mlxc.Array) *mlxc.Array{
	"add": (*mlxc.Array).Add, "subtract": (*mlxc.Array).Sub, "multiply": (*mlxc.Array).Mul,
	"divide": (*mlxc.Array).Div, "power": (*mlxc.Array).Pow,
	"maximum": (*mlxc.Array).Maximum, "minimum": (*mlxc.Array).Minimum,
	"equal": (*mlxc.Array).Equal, "not_equal": (*mlxc.Array).NotEqual,
	"less": (*mlxc.Array).Less, "less_equal": (*mlxc.Array).LessEqual,
	"greater": (*mlxc.Array).Greater, "greater_equal": (*mlxc.Array).GreaterEqual,
	"logical_and": (*mlxc.Array).LogicalAnd, "logical_or": (*mlxc.Array).LogicalOr,
}

// Operands of equal shape and dtype share nodes, others do not. Both must give the same results, on any stream and
// under transforms.
func TestElementwiseOfLikeOperands(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	other, err := mlxc.NewStream(mlxc.CPU)
	require.NoError(t, err)
	dtypes := []mlxc.DType{
		mlxc.Bool, mlxc.Int8, mlxc.Int16, mlxc.Int32, mlxc.Int64, mlxc.Uint8, mlxc.Uint16, mlxc.Uint32,
		mlxc.Uint64, mlxc.Float16, mlxc.BFloat16, mlxc.Float32, mlxc.Float64, mlxc.Complex64,
	}
	for name, op := range elementwise {
		for _, d := range dtypes {
			for _, shape := range [][]int{{}, {0}, {6}, {2, 3}} {
				a := mlxc.Arange(mlxc.Float32, 0, 6, 1).AddScalar(1).AsType(d)
				b := mlxc.Arange(mlxc.Float32, 6, 0, -1).AsType(d)
				if len(shape) == 0 || shape[0] == 0 {
					n := 1 - len(shape)
					a, b = a.Slice([]int{0}, []int{n}, []int{1}), b.Slice([]int{0}, []int{n}, []int{1})
				}
				a, b = a.Reshape(shape...), b.Reshape(shape...)
				// An additional axis in one operand: MLX broadcasts.
				want := op(a, b.ExpandDims(0))
				for range 2 {
					got := op(a, b)
					if want.Err() != nil {
						require.Error(t, got.Err(), "%s %v", name, d)
						continue
					}
					require.NoError(t, got.Err(), "%s %v", name, d)
					require.Equal(t, want.DType(), got.DType(), "%s %v", name, d)
					require.Equal(t, shape, got.Shape(), "%s %v", name, d)
					mlxc.WithStream(other, func() {
						require.Equal(t, mlxtest.Elements(t, want), mlxtest.Elements(t, op(a, b)), "%s %v", name, d)
					})
					require.Equal(t, mlxtest.Elements(t, want), mlxtest.Elements(t, got), "%s %v", name, d)
				}
			}
		}
	}
}

func TestElementwiseOfLikeOperandsTransformed(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	a, b := mlxc.Linspace(mlxc.Float32, 0.5, 2, 6).Reshape(2, 3), mlxc.Linspace(mlxc.Float32, 2, 1, 6).Reshape(2, 3)
	for name, op := range elementwise {
		alike := func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{op(in[0], in[1])} }
		broadcast := func(in []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{op(in[0], in[1].ExpandDims(0)).Squeeze(0)}
		}
		in := []*mlxc.Array{a, b}
		for range 2 {
			if !op(a, b).DType().IsFloating() {
				continue
			}
			_, want, err := mlxc.VJP(broadcast, in, []*mlxc.Array{a})
			require.NoError(t, err)
			_, got, err := mlxc.VJP(alike, in, []*mlxc.Array{a})
			require.NoError(t, err)
			for i := range want {
				require.Equal(t, floats(t, want[i]), floats(t, got[i]), name)
			}
		}
		want := mlxtest.Elements(t, op(a, b.ExpandDims(0)))
		compiled := mlxc.Compile(alike)
		for range 2 {
			got, err := compiled.Call(in...)
			require.NoError(t, err)
			require.Equal(t, want, mlxtest.Elements(t, got[0]), name)
		}
		require.Equal(t, want, mlxtest.Elements(t, mlxc.Vmap(alike, nil, nil)(in)[0]), name)
	}
}
