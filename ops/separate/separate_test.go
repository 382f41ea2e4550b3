package separate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
	"github.com/mlxgrad/mlxgrad/ops/separate"
)

func TestValuesAndGradientsAreThoseOfTheFusedNorms(t *testing.T) {
	normal := func(seed uint64, shape ...int) *mlxc.Array {
		return mlxc.RandomNormal(mlxc.RandomKey(seed), mlxc.Float32, shape...)
	}
	x, w, b, dy := normal(1, 5, 33), normal(2, 33), normal(3, 33), normal(4, 5, 33)
	rmsNorm := func(f func(x, w *mlxc.Array, eps float32) *mlxc.Array) mlxc.Func {
		return func(a []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{f(a[0], a[1], 1e-5)} }
	}
	layerNorm := func(f func(x, w, b *mlxc.Array, eps float32) *mlxc.Array) mlxc.Func {
		return func(a []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{f(a[0], a[1], a[2], 1e-5)} }
	}
	for _, c := range []struct {
		name            string
		fused, separate mlxc.Func
	}{
		{"RMSNorm", rmsNorm(ops.RMSNorm), rmsNorm(separate.RMSNorm)},
		{"LayerNorm", layerNorm(ops.LayerNorm), layerNorm(separate.LayerNorm)},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := func(f mlxc.Func) []*mlxc.Array {
				primals := []*mlxc.Array{x, w, b}
				if c.name == "RMSNorm" {
					primals = primals[:2]
				}
				values, grads, err := mlxc.VJP(f, primals, []*mlxc.Array{dy})
				require.NoError(t, err)
				return append(values, grads...)
			}
			fused, separate := results(c.fused), results(c.separate)
			require.Len(t, separate, len(fused))
			for i := range fused {
				want, err := mlxc.ToSlice[float32](fused[i])
				require.NoError(t, err)
				got, err := mlxc.ToSlice[float32](separate[i])
				require.NoError(t, err)
				require.InDeltaSlice(t, want, got, 1e-5)
			}
		})
	}
	require.ErrorContains(t, separate.RMSNorm(nil, w, 1e-5).Err(), "separate.RMSNorm")
}
