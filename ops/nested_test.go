package ops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A gradient inside of a differentiated function leaves the function's own gradient as it is.
func TestGradientInsideOfAGradient(t *testing.T) {
	const rows, width, classes = 37, 16, 130
	x, w := normal(1, mlxc.Float32, rows, width), normal(2, mlxc.Float32, classes, width)
	weight := normal(4, mlxc.Float32, width)
	targets, few := someTargets(rows, classes), someTargets(rows, width)
	one := arrays{mlxc.Scalar[float32](1)}
	losses := map[string]func(x *mlxc.Array) *mlxc.Array{
		"RMSNorm": func(x *mlxc.Array) *mlxc.Array { return RMSNorm(x, weight, 1e-5).Sum() },
		"LinearCrossEntropy": func(x *mlxc.Array) *mlxc.Array {
			return LinearCrossEntropy(x, w, targets, CrossEntropyConfig{})
		},
		"MLX": func(x *mlxc.Array) *mlxc.Array { return x.Mul(x).Sum() },
	}
	for name, loss := range losses {
		for argument := range 2 {
			t.Run(name+[]string{" of x", " of 2x"}[argument], func(t *testing.T) {
				grad := func(inner, read bool) []float32 {
					_, grads, err := mlxc.VJP(func(p arrays) arrays {
						both := arrays{p[0], p[0].MulScalar(2)}
						if inner {
							_, grads, err := mlxc.VJP(func(a arrays) arrays {
								return arrays{CrossEntropy(a[0], few, CrossEntropyConfig{})}
							}, arrays{both[1]}, one)
							require.NoError(t, err)
							require.True(t, both[0].IsTraced())
							if read {
								mlxtest.Floats(t, grads[0])
							}
						}
						return arrays{loss(both[argument])}
					}, arrays{x}, one)
					require.NoError(t, err)
					return mlxtest.Floats(t, grads[0])
				}
				want := grad(false, false)
				require.Equal(t, want, grad(true, false))
				require.Equal(t, want, grad(true, true))
			})
		}
	}
}
