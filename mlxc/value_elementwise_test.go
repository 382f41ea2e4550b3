package mlxc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Functions of one element, against those of Go's package math.
func init() {
	for _, c := range []struct {
		name     string
		got      func(*mlxc.Array) *mlxc.Array
		want     func(float64) float64
		from, to float64
	}{
		{"mlx_exp", (*mlxc.Array).Exp, math.Exp, -20, 20},
		{"mlx_sqrt", (*mlxc.Array).Sqrt, math.Sqrt, 0, 1e6},
	} {
		value(c.name, func(t *testing.T) {
			const n = 101
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(c.from + (c.to-c.from)*float64(i)/(n-1))
			}
			for i, got := range floats(t, c.got(mlxc.FromSlice(x))) {
				want := c.want(float64(x[i]))
				require.InDelta(t, want, got, 2e-6*math.Max(1, math.Abs(want)), "of %g", x[i])
			}
		})
	}
}
